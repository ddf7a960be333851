import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.ServiceCacheListener;

/** Does with Curator what the program `discovery` does: registers an instance, or prints a line for each change. */
public final class Peer implements ServiceCacheListener {
    private final String name;
    private final ServiceCache<String> cache;
    private String last = "";

    private Peer(String name, ServiceCache<String> cache) {
        this.name = name;
        this.cache = cache;
    }

    public static void main(String[] args) throws Exception {
        int sessionMs = Integer.parseInt(System.getenv("SESSION_MS"));
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(args[1])
                .sessionTimeoutMs(sessionMs)
                .connectionTimeoutMs(sessionMs)
                .retryPolicy(new RetryForever(50))
                .build();
        client.start();
        ServiceDiscovery<String> discovery = ServiceDiscoveryBuilder.builder(String.class)
                .client(client)
                .basePath(args[2])
                .build();
        discovery.start();
        if (args[0].equals("register")) {
            discovery.registerService(ServiceInstance.<String>builder()
                    .name(args[3])
                    .id(args[4])
                    .address(args[5])
                    .port(Integer.parseInt(args[6]))
                    .payload("by Curator")
                    .uriSpec(new UriSpec("{scheme}://{address}:{port}"))
                    .build());
            System.out.println("registered");
        } else {
            ServiceCache<String> cache = discovery.serviceCacheBuilder().name(args[3]).build();
            Peer peer = new Peer(args[3], cache);
            cache.addListener(peer);
            cache.start();
            peer.cacheChanged();
        }
        Thread.currentThread().join();
    }

    @Override
    public synchronized void cacheChanged() {
        TreeMap<String, String> uris = new TreeMap<>();
        for (ServiceInstance<String> instance : cache.getInstances()) {
            if (instance.isEnabled()) {
                uris.put(instance.getId(), instance.getId() + "=" + instance.buildUriSpec());
            }
        }
        String line = name + ": " + String.join(" ", uris.values());
        if (!line.equals(last)) {
            System.out.println(line);
        }
        last = line;
    }

    @Override
    public void stateChanged(CuratorFramework client, ConnectionState state) {}
}
