package org.apache.curator.test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/**
 * Stands in for the class of this name, which starts the servers of Curator's tests in their own process: these servers are
 * processes that {@code zk serve} plays. It stands before the other one on the class path; all the rest is Curator's.
 */
public class ZooKeeperServerEmbeddedAdapter implements ZooKeeperMainFace {
    private Process process;
    private int port;

    @Override
    public void start(QuorumPeerConfigBuilder builder) {
        try {
            Properties properties = builder.buildProperties();
            if (QuorumPeerConfig.isReconfigEnabled()) {
                properties.setProperty("reconfigEnabled", "true");
            }
            // As servers do that begin with a directory that is not there.
            Path data = Files.createDirectories(Path.of(properties.getProperty("dataDir")));
            Path settings = Files.write(data.resolve("zoo.cfg"), lines(properties));
            List<String> command = new ArrayList<>(List.of(System.getenv("ZK_MEMBER"), "start-foreground"));
            System.getProperties().forEach((name, value) -> {
                if (name.toString().matches("(zookeeper|readonlymode|znode)\\..*")) {
                    command.add("-D" + name + "=" + value);
                }
            });
            command.add(settings.toString());
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
            if (line == null || !line.startsWith("started ")) {
                throw new IOException("no server: " + line);
            }
            port = Integer.parseInt(line.split(" ")[1]);
        } catch (Exception e) {
            throw new FailedServerStartException(e);
        }
    }

    private static List<String> lines(Properties properties) {
        List<String> lines = new ArrayList<>();
        properties.forEach((name, value) -> lines.add(name + "=" + value));
        return lines;
    }

    @Override
    public int getClientPort() {
        return port;
    }

    @Override
    public void kill() {
        close();
    }

    /** Ends the server, whose port is closed afterwards. */
    @Override
    public void close() {
        if (process != null) {
            // It ends by itself once its server has stopped.
            try {
                process.getOutputStream().close();
                process.waitFor();
            } catch (IOException | InterruptedException e) {
                process.destroyForcibly();
            }
        }
    }
}
