import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.URI;
import java.net.URLEncoder;
import java.net.UnknownHostException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/**
 * Locks of a holdfast server. Copy this file; it needs Java 17 and nothing else.
 *
 * <pre>{@code
 * var client = new Holdfast("http://127.0.0.1:7420 http://127.0.0.1:7421");
 *
 * client.withLock("orders/42", Duration.ofSeconds(30), Duration.ofSeconds(60), lease -> {
 *     for (Order order : orders) {
 *         lease.check();                // throws Lost once the lease is lost; a thread that sleeps is interrupted
 *         book(order, lease.token());   // and the resource refuses a late holder
 *     }
 *     return null;
 * });
 * }</pre>
 *
 * What is guaranteed, and the rules that this file keeps, are in docs/clients.md.
 */
public final class Holdfast {

    /** No server has answered in time, so what was asked for may have been done or not. */
    public static final class Unavailable extends RuntimeException {
        Unavailable(String path, Throwable why, List<String> urls) {
            super("no server has answered " + path + ": " + why + "; asked: " + String.join(" ", urls));
        }
    }

    /** A server has refused. The code is for programs, the text for people. */
    public static class Problem extends RuntimeException {
        public final int status;
        public final String code;
        public final Map<String, Object> body;

        Problem(int status, Map<String, Object> body) {
            super(String.valueOf(body.getOrDefault("detail", "status " + status)));
            this.status = status;
            this.code = String.valueOf(body.getOrDefault("code", ""));
            this.body = body;
        }
    }

    /** Somebody else has the lock; body.get("holders") says who. */
    public static class Held extends Problem {
        Held(int status, Map<String, Object> body) { super(status, body); }
    }

    /** Somebody else is doing the do-once work. */
    public static final class InProgress extends Held {
        InProgress(int status, Map<String, Object> body) { super(status, body); }
    }

    /** We had the lease and no longer do. */
    public static final class Lost extends Problem {
        Lost(int status, Map<String, Object> body) { super(status, body); }
    }

    /** Work under a lock. */
    public interface Work<T> {
        T run(Lease lease) throws Exception;
    }

    private static final Set<Integer> AGAIN = Set.of(429, 502, 503, 504); // the same request may succeed, here or elsewhere

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
    private final SecureRandom random = new SecureRandom();
    private final List<String> urls;
    private final String token;
    private final Object holder;
    private final AtomicInteger at = new AtomicInteger(); // the server that is asked first
    private volatile boolean reached; // a server has taken a request

    /** A client of the servers of one store, each of which answers for every lease. Spaces separate their URLs. */
    public Holdfast(String urls) { this(urls, null); }

    /** A client with a token, which may be null. */
    public Holdfast(String urls, String token) { this(urls, token, self()); }

    /** A client whose locks others see as the holder says: "host", "pid", "program" and "label". */
    public Holdfast(String urls, String token, Map<String, Object> holder) {
        this.urls = List.of(urls.strip().split("\\s+"));
        for (String url : this.urls) {
            if (!url.matches("https?://[^/].*")) {
                throw new IllegalArgumentException("\"" + url + "\" is not a URL of a holdfast server: want http://HOST:PORT");
            }
        }
        this.token = token;
        this.holder = holder;
    }

    /** This process, as others see it. */
    private static Map<String, Object> self() {
        String host = "";
        try {
            host = InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException nameless) {
            // The server knows the address.
        }
        String[] command = System.getProperty("sun.java.command", "java").split(" ");
        String program = command[0].substring(command[0].lastIndexOf('/') + 1);
        return Map.of("host", host, "pid", ProcessHandle.current().pid(), "program", program);
    }

    /**
     * Does work under a lock, in this thread, and returns what it returns. Waits in the queue,
     * then throws Held. When the lease is lost, the thread is interrupted.
     */
    public <T> T withLock(String name, Duration ttl, Duration wait, Work<T> work) throws Exception {
        Lease lease = lock(name, ttl, wait);
        Thread worker = Thread.currentThread();
        lease.onLoss(worker::interrupt);
        T result;
        try {
            result = work.run(lease);
        } catch (Exception failed) {
            lease.end();
            if (lease.isLost()) throw lease.lost(failed);
            try {
                lease.release();
            } catch (Problem | Unavailable after) {
                failed.addSuppressed(after);
            }
            throw failed;
        }
        try {
            lease.release();
        } catch (Unavailable ends) {
            // The work is done, and the lease ends by itself.
        }
        return result;
    }

    /** Takes a lock, and keeps it until the lease is released, or lost. */
    public Lease lock(String name, Duration ttl, Duration wait) throws InterruptedException {
        return lock(name, ttl, wait, Map.of());
    }

    /** Takes a lock; more are further fields of the request, such as "mode", "reason" or "min_token". */
    public Lease lock(String name, Duration ttl, Duration wait, Map<String, Object> more) throws InterruptedException {
        String key = newKey();
        Map<String, Object> body = new LinkedHashMap<>(more);
        body.put("name", name);
        Lease lease = null;
        try {
            return lease = new Lease(turn("/v1/leases", body, key, ttl, wait));
        } finally {
            if (lease == null) cancel(name, key);
        }
    }

    /**
     * Does work unless that was done under this key, and returns its result either way: a
     * Map, a List, a String, a Long, a Boolean or null. If the work throws, the next caller
     * does it. Waits for somebody else who does it now, then throws Held.
     */
    public Object once(String key, Duration ttl, Duration wait, Work<?> work) throws Exception {
        String path = "/v1/once/" + URLEncoder.encode(key, StandardCharsets.UTF_8).replace("+", "%20");
        Answer answer = turn(path, Map.of(), newKey(), ttl, wait);
        if (answer.status == 200) return answer.body.get("result");
        Lease lease = new Lease(answer);
        Thread worker = Thread.currentThread();
        lease.onLoss(worker::interrupt);
        try {
            Object result = work.run(lease);
            lease.check();
            Map<String, Object> body = new LinkedHashMap<>();
            body.put("lease_id", lease.id);
            body.put("result", result);
            ask("PUT", path + "/result", body, null, 15_000, 5_000);
            return result;
        } catch (Exception failed) {
            lease.end();
            if (lease.isLost()) throw lease.lost(failed);
            try {
                ask("POST", path + "/fail", Map.of("lease_id", lease.id), null, 2_000, 2_000);
            } catch (Problem | Unavailable after) {
                failed.addSuppressed(after); // the lease ends by itself
            }
            throw failed;
        } finally {
            lease.end();
        }
    }

    /** Asks for a lease until there is an answer, and waits in the queue. */
    private Answer turn(String path, Map<String, Object> what, String key, Duration ttl, Duration wait) throws InterruptedException {
        if (ttl.toMillis() < 1_000 || ttl.toHours() > 1) {
            throw new IllegalArgumentException("a TTL of " + ttl + ": want a second to an hour; a lease is renewed for as long as the work takes");
        }
        long until = now() + wait.toMillis();
        while (true) {
            // A short wait at a time: the deadline counts from before the request.
            long left = Math.max(0, until - now());
            long piece = Math.min(left, ttl.toMillis() / 3);
            Map<String, Object> body = new LinkedHashMap<>();
            body.put("holder", holder);
            body.putAll(what);
            body.put("ttl_ms", ttl.toMillis());
            body.put("wait_ms", piece);
            Answer answer = ask("POST", path, body, key, piece + 15_000, piece + 5_000, piece < left);
            if (answer.status != 202) return answer;
            // We have a place in the queue, which the next request with this key keeps.
        }
    }

    private static Map<String, Object> refusal(String code, String detail, Map<String, Object> more) {
        Map<String, Object> body = new LinkedHashMap<>(more);
        body.put("code", code);
        body.put("detail", detail);
        return body;
    }

    /** Leaves the queue, and gives back what may have been granted without our knowing. */
    private void cancel(String name, String key) throws InterruptedException {
        if (!reached) return;
        boolean interrupted = Thread.interrupted();
        try {
            ask("POST", "/v1/leases/release", Map.of("name", name), key, 2_000, 2_000);
        } catch (Problem | Unavailable failed) {
            // It ends by itself.
        } finally {
            if (interrupted) Thread.currentThread().interrupt();
        }
    }

    /** A fresh Idempotency-Key. */
    public String newKey() {
        byte[] bytes = new byte[16];
        random.nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    /** What a server has answered, and when the request was sent. */
    public record Answer(long before, int status, Map<String, Object> body) {}

    /**
     * Asks one server after the other until one has answered. Each request may be repeated:
     * the servers know it by the lease ID, or by its key. If all refuse the connection, and none
     * has ever taken a request, that is an error at once: most likely a URL is wrong. Times are
     * in milliseconds.
     */
    public Answer ask(String method, String path, Map<String, Object> body, String key, long within, long patience)
            throws InterruptedException {
        return ask(method, path, body, key, within, patience, false);
    }

    private Answer ask(String method, String path, Map<String, Object> body, String key, long within, long patience, boolean comesBack)
            throws InterruptedException {
        long until = now() + within;
        int refusals = 0;
        for (long pause = 50; ; pause = Math.min(2 * pause, 1_000)) {
            int server = at.get();
            long before = now();
            Throwable why;
            try {
                var request = HttpRequest.newBuilder(URI.create(urls.get(server % urls.size()) + path))
                        .method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(Json.write(body)))
                        .timeout(Duration.ofMillis(Math.max(10, Math.min(patience, until - before))))
                        .header("Content-Type", "application/json");
                if (key != null) request.header("Idempotency-Key", key);
                // Without this a wait that ends without the lock leaves no place in the queue.
                if (comesBack) request.header("Prefer", "respond-async");
                if (token != null) request.header("Authorization", "Bearer " + token);
                HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
                reached = true;
                if (response.statusCode() < 300) return new Answer(before, response.statusCode(), Json.read(response.body()));
                Problem problem = problem(response);
                if (!AGAIN.contains(problem.status)) throw problem;
                why = problem;
            } catch (ConnectException refused) {
                refusals++;
                why = refused;
            } catch (IOException | IllegalArgumentException failed) {
                reached = true;
                why = failed;
            }
            at.compareAndSet(server, server + 1); // or another thread has moved on already
            if (now() + pause >= until || !reached && refusals >= urls.size()) throw new Unavailable(path, why, urls);
            Thread.sleep(pause);
        }
    }

    private static Problem problem(HttpResponse<String> response) {
        Map<String, Object> body;
        try {
            body = Json.read(response.body());
        } catch (IllegalArgumentException fromAProxy) {
            body = Map.of();
        }
        int status = response.statusCode();
        return switch (String.valueOf(body.get("code"))) {
            case "lock-held" -> new Held(status, body);
            case "in-progress" -> new InProgress(status, body);
            case "lost", "broken", "released" -> new Lost(status, body);
            default -> new Problem(status, body);
        };
    }

    /** Milliseconds of a clock that nobody sets. */
    private static long now() {
        return System.nanoTime() / 1_000_000;
    }

    /** A lock that is held. It is renewed in the background. */
    public final class Lease {
        private final String name;
        private final String id;
        private final long token;
        private final long ttl;
        private volatile long deadline;
        private volatile Runnable onLoss = () -> {};
        private boolean lost;
        private final CountDownLatch ended = new CountDownLatch(1);

        private Lease(Answer answer) {
            name = (String) answer.body.get("name");
            id = (String) answer.body.get("lease_id");
            token = (Long) answer.body.get("fencing_token");
            ttl = (Long) answer.body.get("ttl_ms");
            trusted(answer);
            start(this::renew);
            start(this::watch);
        }

        public String name() { return name; }
        public String id() { return id; }
        public long token() { return token; }

        /** Sets what is called when the lease is lost, before another can have it, on a thread of the lease. */
        public void onLoss(Runnable told) { onLoss = told; }

        // From before the request was sent, so that the store counts longer than we do. A
        // tenth is for clocks that are slewed, and a twentieth for work to stop in.
        private void trusted(Answer answer) {
            deadline = answer.before + (Long) answer.body.get("expires_in_ms") * 85 / 100;
        }

        private void renew() throws InterruptedException {
            while (!ended.await(ttl / 3, TimeUnit.MILLISECONDS)) {
                try {
                    Map<String, Object> body = Map.of("name", name, "lease_id", id, "fencing_token", token, "ttl_ms", ttl);
                    trusted(ask("POST", "/v1/leases/renew", body, null, deadline - now(), ttl / 6));
                } catch (Lost gone) {
                    lose();
                } catch (Problem | Unavailable failed) {
                    // Asked again until the deadline.
                }
            }
        }

        /** Tells the loss at the deadline, whatever the renewal is waiting for. */
        private void watch() throws InterruptedException {
            while (!ended.await(deadline - now(), TimeUnit.MILLISECONDS)) {
                if (now() >= deadline) lose();
            }
        }

        private synchronized void lose() {
            if (ended.getCount() == 0) return;
            lost = true;
            ended.countDown();
            onLoss.run();
        }

        private synchronized void end() { ended.countDown(); }

        public synchronized boolean isLost() { return lost || now() >= deadline; }

        private Lost lost(Exception cause) {
            Thread.interrupted(); // what interrupted the work was the loss
            Lost e = new Lost(410, refusal("lost", "the lease of \"" + name + "\" is lost", Map.of()));
            e.initCause(cause);
            return e;
        }

        /** Throws Lost if the lease is lost. */
        public void check() {
            if (isLost()) throw lost(null);
        }

        /**
         * Runs a command under the lease, with the token in its environment, and returns its
         * status. When the lease is lost, it is stopped before another can have the lock.
         */
        public int run(ProcessBuilder command) throws IOException, InterruptedException {
            command.environment().put("HOLDFAST_NAME", name);
            command.environment().put("HOLDFAST_FENCING_TOKEN", Long.toString(token));
            Process job = command.start();
            try {
                while (!job.waitFor(50, TimeUnit.MILLISECONDS)) check();
                return job.exitValue();
            } finally {
                stop(job);
            }
        }

        private void stop(Process job) throws InterruptedException {
            List<ProcessHandle> all = new ArrayList<>(job.descendants().toList());
            all.add(job.toHandle());
            all.forEach(ProcessHandle::destroy);
            long until = now() + ttl / 20;
            while (now() < until && all.stream().anyMatch(ProcessHandle::isAlive)) Thread.sleep(10);
            all.forEach(ProcessHandle::destroyForcibly);
        }

        /** Gives the lock back. Throws Lost if it was lost before. */
        public void release() throws InterruptedException {
            end();
            check();
            ask("POST", "/v1/leases/release", Map.of("name", name, "lease_id", id), null, deadline - now(), 5_000);
        }
    }

    private interface Task {
        void run() throws InterruptedException;
    }

    private static void start(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (InterruptedException nobodyDoes) {
                throw new IllegalStateException(nobodyDoes);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** As much JSON as this API has: objects are maps, arrays lists, and whole numbers longs. */
    static final class Json {
        private final String text;
        private int at;

        private Json(String text) { this.text = text; }

        @SuppressWarnings("unchecked")
        static Map<String, Object> read(String text) {
            if (text.isBlank()) return Map.of();
            try {
                return (Map<String, Object>) new Json(text).value();
            } catch (ClassCastException | IndexOutOfBoundsException e) {
                throw new IllegalArgumentException("not an object of JSON", e);
            }
        }

        static String write(Object v) {
            if (v instanceof Map<?, ?> map) {
                return map.entrySet().stream().map(e -> write(e.getKey()) + ":" + write(e.getValue())).collect(Collectors.joining(",", "{", "}"));
            }
            if (v instanceof List<?> list) return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
            if (!(v instanceof String s)) return String.valueOf(v);
            StringBuilder out = new StringBuilder("\"");
            for (char c : s.toCharArray()) {
                if (c == '"' || c == '\\') out.append('\\').append(c);
                else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
                else out.append(c);
            }
            return out.append('"').toString();
        }

        private Object value() {
            char c = peek();
            if (c == '{') {
                Map<String, Object> map = new LinkedHashMap<>();
                for (at++; peek() != '}'; skip(',')) {
                    String key = string();
                    skip(':');
                    map.put(key, value());
                }
                at++;
                return map;
            }
            if (c == '[') {
                List<Object> list = new ArrayList<>();
                for (at++; peek() != ']'; skip(',')) list.add(value());
                at++;
                return list;
            }
            if (c == '"') return string();
            int from = at;
            while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
            String word = text.substring(from, at);
            return switch (word) {
                case "true" -> true;
                case "false" -> false;
                case "null" -> null;
                default -> word.matches("-?\\d+") ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
            };
        }

        private char peek() {
            while (Character.isWhitespace(text.charAt(at))) at++;
            return text.charAt(at);
        }

        private void skip(char c) {
            if (peek() == c) at++;
        }

        private String string() {
            if (peek() != '"') throw new IllegalArgumentException("JSON: want a string");
            StringBuilder out = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char c = text.charAt(at);
                if (c == '\\') {
                    c = text.charAt(++at);
                    switch (c) {
                        case 'n' -> c = '\n';
                        case 't' -> c = '\t';
                        case 'r' -> c = '\r';
                        case 'b' -> c = '\b';
                        case 'f' -> c = '\f';
                        case 'u' -> {
                            c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                            at += 4;
                        }
                        default -> { }
                    }
                }
                out.append(c);
            }
            at++;
            return out.toString();
        }
    }
}
