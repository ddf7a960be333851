import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.data.Stat;

/**
 * Takes a lock through Curator's recipes again and again, and tells the resource of it.
 *
 * <p>src/interop/contender.rs is the same for zk-locks, and explains the arguments.
 */
public final class Contender {
    private static final int RETRY_MS = 50;

    private final String scenario;
    private final String path;
    private final int holdMs;
    private final int permits;
    private final CuratorFramework client;
    private final Resource resource;

    private Contender(String[] args, int task, CuratorFramework client) throws IOException {
        scenario = args[0];
        path = args[2];
        holdMs = Integer.parseInt(args[7]);
        permits = Integer.parseInt(args[9]);
        this.client = client;
        resource = new Resource(args[3], args[4], args[5] + "." + task);
    }

    public static void main(String[] args) throws Exception {
        endWithParent();
        int sessionMs = Integer.parseInt(args[8]);
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(args[1])
                .sessionTimeoutMs(sessionMs)
                .connectionTimeoutMs(sessionMs)
                .retryPolicy(new RetryForever(RETRY_MS))
                .build();
        client.start();
        Thread[] tasks = new Thread[Integer.parseInt(args[6])];
        for (int task = 0; task < tasks.length; task++) {
            Contender contender = new Contender(args, task, client);
            tasks[task] = new Thread(contender::run);
            tasks[task].start();
        }
        for (Thread task : tasks) {
            task.join();
        }
        client.close();
        // Whatever Curator has left running.
        System.exit(0);
    }

    /** Whoever has started this process holds the other end of its input. */
    private static void endWithParent() {
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {}
            } catch (IOException ended) {
                // As good as the end.
            }
            Runtime.getRuntime().halt(1);
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    private void run() {
        while (!resource.ended) {
            try {
                turn();
            } catch (ResourceGone gone) {
                Runtime.getRuntime().halt(1);
            } catch (Exception failed) {
                failed.printStackTrace();
                resource.note(failed.getClass().getSimpleName());
            }
        }
    }

    private void turn() throws Exception {
        switch (scenario) {
            case "exclusive" -> exclusive();
            case "read-write" -> readWrite();
            case "semaphore" -> semaphore();
            case "leader" -> leader();
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    private void exclusive() throws Exception {
        Mutex lock = new Mutex(client, path);
        lock.acquire();
        try {
            visit("alone", lock.node());
        } finally {
            lock.release();
        }
    }

    private void readWrite() throws Exception {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        int chance = ThreadLocalRandom.current().nextInt(10);
        if (chance < 5) {
            lock.readLock().acquire();
            try {
                visit("read", lock.readLock().getLockPath());
            } finally {
                lock.readLock().release();
            }
        } else if (chance < 8) {
            lock.writeLock().acquire();
            try {
                visit("alone", lock.writeLock().getLockPath());
            } finally {
                lock.writeLock().release();
            }
        } else {
            downgraded(lock);
        }
    }

    private void downgraded(InterProcessReadWriteLock lock) throws Exception {
        lock.writeLock().acquire();
        long token;
        try {
            token = enter("alone", lock.writeLock().getLockPath());
            if (token < 0) {
                return;
            }
            hold();
            if (!resource.ask("downgrade " + token)) {
                return;
            }
            hold();
            lock.readLock().acquire();
        } finally {
            // Curator lets nobody in between: the read lock has its node by now.
            lock.writeLock().release();
        }
        try {
            if (resource.ask("moved " + token + " " + lock.readLock().getLockPath())) {
                hold();
                resource.ask("leave " + token);
            }
        } finally {
            lock.readLock().release();
        }
    }

    private void semaphore() throws Exception {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, permits);
        Lease lease = semaphore.acquire();
        try {
            visit("lease", path + "/leases/" + lease.getNodeName());
        } finally {
            semaphore.returnLease(lease);
        }
    }

    private void leader() throws Exception {
        try (LeaderLatch latch = new LeaderLatch(client, path, resource.name)) {
            latch.start();
            latch.await();
            visit("alone", latch.getOurPath());
        }
    }

    private void visit(String mode, String node) throws Exception {
        long token = enter(mode, node);
        if (token >= 0) {
            hold();
            resource.ask("leave " + token);
        }
    }

    /** The token of the visit that has begun; negative if it has not. */
    private long enter(String mode, String node) throws Exception {
        Stat stat = node == null ? null : client.checkExists().forPath(node);
        if (stat == null) {
            resource.note("lost-before-use");
            return -1;
        }
        boolean in = resource.ask("enter " + mode + " " + stat.getCzxid() + " " + node);
        return in ? stat.getCzxid() : -1;
    }

    private void hold() throws InterruptedException {
        if (holdMs > 0) {
            Thread.sleep(holdMs);
        }
    }

    /** Curator's lock, which tells its node to subclasses only. */
    private static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String node() {
            return getLockPath();
        }
    }

    private static final class ResourceGone extends RuntimeException {
        ResourceGone(Throwable cause) {
            super(cause);
        }
    }

    /** The resource, over a connection of our own. */
    private static final class Resource {
        final String name;
        boolean ended;
        private final BufferedReader answers;
        private final PrintWriter requests;

        Resource(String addr, String party, String name) throws IOException {
            int colon = addr.lastIndexOf(':');
            Socket socket = new Socket(addr.substring(0, colon), Integer.parseInt(addr.substring(colon + 1)));
            socket.setTcpNoDelay(true);
            answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            requests = new PrintWriter(socket.getOutputStream(), false, StandardCharsets.UTF_8);
            this.name = name;
            ask("hello " + party + " " + name);
        }

        void note(String word) {
            ask("note " + word);
        }

        /** Whether the resource agrees. */
        boolean ask(String request) {
            requests.print(request + "\n");
            requests.flush();
            String answer;
            try {
                answer = answers.readLine();
            } catch (IOException gone) {
                throw new ResourceGone(gone);
            }
            if (answer == null) {
                throw new ResourceGone(null);
            }
            ended |= answer.equals("end");
            return answer.equals("ok");
        }
    }
}
