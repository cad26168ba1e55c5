import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/** What Holdfast.java can do: java Demo URL[,URL...] COMMAND ARG... */
public final class Demo {
    private static final Duration TTL = Duration.ofSeconds(10), WAIT = Duration.ofSeconds(60);

    public static void main(String[] args) throws Exception {
        var client = new Holdfast(args[0].replace(',', ' '), System.getenv("HOLDFAST_TOKEN"));
        try {
            switch (args[1]) {
                case "count" -> count(client, args[2], Path.of(args[3]), Integer.parseInt(args[4]));
                case "hold" -> hold(client, args[2], seconds(args[3]));
                case "run" -> run(client, args[2], seconds(args[3]), Arrays.asList(args).subList(4, args.length));
                case "once" -> once(client, args[2], args[3]);
                case "take" -> take(client, args[2]);
                default -> throw new IllegalArgumentException(args[1]);
            }
        } catch (Holdfast.Problem refused) {
            System.err.println(refused.code);
            System.exit(1);
        } catch (Holdfast.Unavailable nobody) {
            System.err.println("unavailable");
            System.exit(1);
        }
    }

    private static Duration seconds(String text) {
        return Duration.ofMillis(Math.round(Double.parseDouble(text) * 1000));
    }

    /** Adds 1 to the number in a file, as others do at the same time. */
    private static void count(Holdfast client, String name, Path file, int times) throws Exception {
        for (int i = 0; i < times; i++) {
            client.withLock(name, TTL, WAIT, lease -> {
                int n = Integer.parseInt(Files.readString(file).strip());
                Thread.sleep(2); // for anybody else to read the same number
                lease.check();
                return Files.writeString(file, String.valueOf(n + 1));
            });
        }
    }

    /** Holds a lock until the input ends. */
    private static void hold(Holdfast client, String name, Duration ttl) throws Exception {
        client.withLock(name, ttl, WAIT, lease -> {
            System.out.println("acquired " + lease.token());
            var done = new CountDownLatch(1);
            var reader = new Thread(() -> {
                try {
                    System.in.readAllBytes();
                } catch (java.io.IOException ended) {
                    // as good as an end
                }
                done.countDown();
            });
            reader.setDaemon(true);
            reader.start();
            done.await(); // is interrupted when the lease is lost
            return null;
        });
        System.out.println("released");
    }

    /** Runs a command under a lock. */
    private static void run(Holdfast client, String name, Duration ttl, List<String> command) throws Exception {
        System.exit(client.withLock(name, ttl, WAIT, lease -> lease.run(new ProcessBuilder(command).inheritIO())));
    }

    /** Does work once, whoever else does it too. */
    private static void once(Holdfast client, String key, String value) throws Exception {
        var result = (Map<?, ?>) client.once(key, TTL, WAIT, lease -> {
            System.out.println("working " + lease.token());
            return Map.of("value", value);
        });
        System.out.println("result " + result.get("value"));
    }

    /** Takes a lock if it is free. */
    private static void take(Holdfast client, String name) throws Exception {
        client.withLock(name, TTL, Duration.ZERO, lease -> {
            System.out.println("acquired " + lease.token());
            return null;
        });
    }
}
