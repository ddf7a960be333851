import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * The Java client and Curator, measured like the others: see benches/src/task.rs for the command line, behind the
 * client's name, and report.rs for the output.
 *
 * <p>One at a time by blocking calls; several in flight by asynchronous ones, each begun by the completion of the one
 * before.
 */
public final class Driver {
    private static final String LOCK = "/bench-lock";
    private static final int SESSION_MS = 10_000;

    private final Map<String, String> task = new HashMap<>();
    private final String workload;
    private final boolean curator;
    private final int inFlight;
    private final String path;
    /** Its children are made by our own client's program. */
    private final String listed;
    private final byte[] data;
    private CuratorCache followed;
    private long heapBefore;

    private interface Step {
        void take() throws Exception;
    }

    /** A time, or a count, in which operations are done. */
    private final class Phase {
        final long end;
        final boolean counted = task.containsKey("operations");
        final AtomicLong left;
        final AtomicLong done = new AtomicLong();
        private long[] samples = new long[1 << 16];
        private int sampled;

        Phase(double seconds, long operations) {
            end = System.nanoTime() + (long) (seconds * 1e9);
            left = new AtomicLong(operations);
        }

        boolean goesOn() {
            return counted ? left.getAndDecrement() > 0 : System.nanoTime() < end;
        }

        synchronized void took(long nanoseconds) {
            if (sampled == samples.length) {
                samples = Arrays.copyOf(samples, 2 * sampled);
            }
            samples[sampled++] = nanoseconds;
        }

        String percentiles() {
            if (sampled == 0) {
                return "";
            }
            long[] sorted = Arrays.copyOf(samples, sampled);
            Arrays.sort(sorted);
            int last = sampled - 1;
            return String.format(Locale.ROOT, ",\"p50_us\":%f,\"p99_us\":%f,\"p999_us\":%f",
                    sorted[last / 2] / 1e3, sorted[(int) (last * 0.99)] / 1e3, sorted[(int) (last * 0.999)] / 1e3);
        }
    }

    private Driver(String[] args) {
        curator = args[0].equals("curator");
        workload = args[1];
        for (int i = 2; i < args.length; i++) {
            String name = args[i].substring(2);
            task.put(name, name.equals("unawaited") ? "" : args[++i]);
        }
        inFlight = Integer.parseInt(task.getOrDefault("in-flight", "1"));
        data = new byte[Integer.parseInt(task.getOrDefault("payload", "128"))];
        path = "/bench-" + data.length;
        listed = "/bench-list-" + task.get("children");
    }

    public static void main(String[] args) throws Exception {
        new Driver(args).run();
        // Clients of idle sessions would take long to close.
        Runtime.getRuntime().halt(0);
    }

    private ZooKeeper connect() throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(task.get("server"), SESSION_MS, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        return client;
    }

    private CuratorFramework framework() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(task.get("server"))
                .sessionTimeoutMs(SESSION_MS)
                .connectionTimeoutMs(SESSION_MS)
                .retryPolicy(new RetryForever(50))
                .build();
        client.start();
        client.blockUntilConnected();
        return client;
    }

    private void run() throws Exception {
        ZooKeeper client = connect();
        try {
            client.create(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException exists) {
            // Of the last time.
        }
        long grown = 0;
        Object[] kept = null;
        boolean once = false;
        java.util.function.Consumer<Phase> measured;
        switch (workload + (curator ? " of curator" : "")) {
            case "get", "set", "list" -> measured = phase -> quietly(() -> requests(phase, client));
            case "connect" -> measured = phase -> quietly(() -> connects(phase));
            case "connect of curator" -> measured = phase -> quietly(() -> frameworks(phase));
            case "lock of curator" -> {
                InterProcessMutex lock = new InterProcessMutex(framework(), LOCK);
                measured = phase -> quietly(() -> {
                    while (phase.goesOn()) {
                        long begun = System.nanoTime();
                        lock.acquire();
                        lock.release();
                        phase.took(System.nanoTime() - begun);
                        phase.done.incrementAndGet();
                    }
                });
            }
            case "hand-off of curator" -> {
                CuratorFramework[] clients = new CuratorFramework[inFlight];
                for (int i = 0; i < inFlight; i++) {
                    clients[i] = framework();
                }
                measured = phase -> quietly(() -> handOff(phase, clients));
            }
            case "idle", "idle of curator" -> {
                long before = status("VmRSS:");
                kept = new Object[inFlight];
                for (int i = 0; i < inFlight; i++) {
                    kept[i] = curator ? framework() : connect();
                }
                grown = status("VmRSS:") - before;
                measured = phase -> quietly(() -> {
                    Thread.sleep(Math.max(0, (phase.end - System.nanoTime()) / 1_000_000));
                    phase.done.set(inFlight);
                });
            }
            case "cache of curator" -> {
                once = true;
                measured = phase -> quietly(() -> follow(phase));
            }
            default -> {
                System.err.println("not with " + (curator ? "curator: " : "java: ") + workload);
                Runtime.getRuntime().halt(1);
                return;
            }
        }
        if (kept == null && !once) {
            measured.accept(new Phase(Double.parseDouble(task.getOrDefault("warm-up", "1")), 0));
        }
        Phase phase = new Phase(Double.parseDouble(task.getOrDefault("seconds", "3")),
                Long.parseLong(task.getOrDefault("operations", "0")));
        long begun = System.nanoTime();
        double cpu = processor();
        measured.accept(phase);
        double elapsed = (System.nanoTime() - begun) / 1e9;
        cpu = processor() - cpu;
        long done = phase.done.get();
        long perNode = followed == null ? 0 : (heap() - heapBefore) / Math.max(done, 1);
        System.out.println(String.format(Locale.ROOT,
                "{\"client\":\"%s\",\"workload\":\"%s\",\"in_flight\":%d,\"payload\":%d,\"operations\":%d,\"seconds\":%f,"
                        + "\"ops_per_second\":%f,\"cpu_us_per_op\":%f,\"cpu_share\":%f,\"resident_kib\":%d,\"peak_kib\":%d%s%s%s}",
                curator ? "curator" : "java", workload, inFlight, data.length, done, elapsed, done / elapsed,
                cpu * 1e6 / Math.max(done, 1), cpu / elapsed, status("VmRSS:"), status("VmHWM:"),
                kept == null ? "" : ",\"resident_kib_grown\":" + grown,
                perNode == 0 ? "" : ",\"heap_per_node\":" + perNode, phase.percentiles()));
        System.out.flush();
    }

    /** Follows the nodes that our own client's program has made. */
    private void follow(Phase phase) throws Exception {
        String shape = task.containsKey("children") ? "tree-" + task.get("children") : "flat";
        String root = "/bench-" + shape + "-" + data.length + "-" + inFlight;
        CuratorFramework client = framework();
        if (client.checkExists().forPath(root) == null) {
            throw new IllegalStateException("there are no such nodes yet: ours makes them");
        }
        long before = heap();
        CountDownLatch ready = new CountDownLatch(1);
        CuratorCache cache = CuratorCache.build(client, root);
        cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(ready::countDown).build());
        cache.start();
        ready.await();
        phase.done.set(cache.size() - 1);
        followed = cache;
        heapBefore = before;
    }

    /** Bytes that are in use once everything else has been collected. */
    private static long heap() {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    private static void quietly(Step step) {
        try {
            step.take();
        } catch (Exception failure) {
            System.err.println(failure);
            Runtime.getRuntime().halt(1);
        }
    }

    private void requests(Phase phase, ZooKeeper client) throws Exception {
        if (inFlight == 1) {
            while (phase.goesOn()) {
                long begun = System.nanoTime();
                switch (workload) {
                    case "get" -> client.getData(path, false, null);
                    case "list" -> client.getChildren(listed, false);
                    default -> client.setData(path, data, -1);
                }
                phase.took(System.nanoTime() - begun);
                phase.done.incrementAndGet();
            }
            return;
        }
        CountDownLatch ended = new CountDownLatch(inFlight);
        for (int i = 0; i < inFlight; i++) {
            next(phase, client, ended);
        }
        ended.await();
    }

    private void next(Phase phase, ZooKeeper client, CountDownLatch ended) {
        if (!phase.goesOn()) {
            ended.countDown();
            return;
        }
        long begun = System.nanoTime();
        switch (workload) {
            case "get" -> client.getData(path, false, (code, p, c, d, stat) -> completed(phase, client, begun, code, ended), null);
            case "list" -> client.getChildren(listed, false, (int code, String p, Object c, List<String> names) ->
                    completed(phase, client, begun, code, ended), null);
            default -> client.setData(path, data, -1, (code, p, c, stat) -> completed(phase, client, begun, code, ended), null);
        }
    }

    private void completed(Phase phase, ZooKeeper client, long begun, int code, CountDownLatch ended) {
        if (code != 0) {
            System.err.println(KeeperException.Code.get(code));
            Runtime.getRuntime().halt(1);
        }
        if (phase.done.incrementAndGet() % 16 == 0) {
            phase.took(System.nanoTime() - begun);
        }
        next(phase, client, ended);
    }

    private void connects(Phase phase) throws Exception {
        while (phase.goesOn()) {
            long begun = System.nanoTime();
            ZooKeeper client = connect();
            client.getData(path, false, null);
            phase.took(System.nanoTime() - begun);
            phase.done.incrementAndGet();
            client.close();
        }
    }

    private void frameworks(Phase phase) throws Exception {
        while (phase.goesOn()) {
            long begun = System.nanoTime();
            CuratorFramework client = framework();
            client.getData().forPath(path);
            phase.took(System.nanoTime() - begun);
            phase.done.incrementAndGet();
            client.close();
        }
    }

    private void handOff(Phase phase, CuratorFramework[] clients) throws InterruptedException {
        AtomicLong released = new AtomicLong();
        Thread[] contenders = new Thread[clients.length];
        for (int i = 0; i < clients.length; i++) {
            InterProcessMutex lock = new InterProcessMutex(clients[i], LOCK);
            contenders[i] = new Thread(() -> quietly(() -> {
                for (boolean goesOn = true; goesOn;) {
                    lock.acquire();
                    goesOn = phase.goesOn();
                    long last = released.get();
                    if (goesOn) {
                        phase.done.incrementAndGet();
                        if (last != 0) {
                            phase.took(System.nanoTime() - last);
                        }
                    }
                    released.set(System.nanoTime());
                    lock.release();
                }
            }));
            contenders[i].start();
        }
        for (Thread contender : contenders) {
            contender.join();
        }
    }

    /** The whole process's, the collector's and the compiler's threads included. */
    private static double processor() {
        var bean = (com.sun.management.OperatingSystemMXBean)
                java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return bean.getProcessCpuTime() / 1e9;
    }

    private static long status(String key) throws IOException {
        try (var lines = Files.lines(Path.of("/proc/self/status"))) {
            return lines.filter(line -> line.startsWith(key))
                    .mapToLong(line -> Long.parseLong(line.split("\\s+")[1]))
                    .findFirst()
                    .orElse(0);
        }
    }
}
