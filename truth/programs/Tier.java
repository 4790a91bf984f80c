import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;

/**
 * A tier in Java: a thread for each connection.
 *
 * <p>Usage: Tier HOST:PORT - [idle=N] STAGE .., with times in microseconds, such as pool=4x20000us.
 */
public final class Tier {
    interface Stage {
        void serve() throws InterruptedException;
    }

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final byte[] ANSWER =
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".getBytes(StandardCharsets.US_ASCII);

    static long nanos(String text) {
        return Long.parseLong(text.replace("us", "")) * 1000;
    }

    static void sleepUntil(long then) {
        for (long left = then - System.nanoTime(); left > 0; left = then - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    /** Each token is the time at which a worker became free: late sleeps do not add up. */
    static Stage pool(int workers, long hold) {
        BlockingQueue<Long> tokens = new LinkedBlockingQueue<>();
        for (int worker = 0; worker < workers; worker++) {
            tokens.add(System.nanoTime());
        }
        return () -> {
            long arrived = System.nanoTime();
            long free = Math.max(arrived, tokens.take()) + hold;
            sleepUntil(free);
            tokens.add(free);
        };
    }

    static Stage stage(String word) {
        String value = word.substring(word.indexOf('=') + 1);
        switch (word.substring(0, word.indexOf('='))) {
            case "delay":
                return () -> sleepUntil(System.nanoTime() + nanos(value));
            case "pool":
                return pool(Integer.parseInt(value.split("x")[0]), nanos(value.split("x")[1]));
            case "lock":
                return pool(1, nanos(value));
            case "burn":
                return () -> {
                    long end = THREADS.getCurrentThreadCpuTime() + nanos(value);
                    while (THREADS.getCurrentThreadCpuTime() < end) {}
                };
            default:
                throw new IllegalArgumentException(word);
        }
    }

    static void answer(Socket client, List<Stage> stages) {
        try (client) {
            client.setTcpNoDelay(true);
            BufferedReader requests =
                    new BufferedReader(new InputStreamReader(client.getInputStream(), StandardCharsets.US_ASCII));
            for (String line = requests.readLine(); line != null; line = requests.readLine()) {
                if (!line.isEmpty()) {
                    continue;
                }
                for (Stage stage : stages) {
                    stage.serve();
                }
                client.getOutputStream().write(ANSWER);
            }
        } catch (IOException | InterruptedException gone) {
            // The client has gone.
        }
    }

    public static void main(String[] words) throws Exception {
        if (!words[1].equals("-")) {
            throw new IllegalArgumentException("this tier forwards to nobody");
        }
        List<Stage> stages = new ArrayList<>();
        for (int place = 2; place < words.length; place++) {
            if (!words[place].startsWith("idle=")) {
                stages.add(stage(words[place]));
                continue;
            }
            for (int left = Integer.parseInt(words[place].substring(5)); left > 0; left--) {
                CountDownLatch never = new CountDownLatch(1);
                Thread idle = new Thread(() -> { try { never.await(); } catch (InterruptedException end) { } });
                idle.setDaemon(true);
                idle.start();
            }
        }
        String[] address = words[0].split(":");
        ServerSocket listener = new ServerSocket();
        listener.bind(new InetSocketAddress(address[0], Integer.parseInt(address[1])), 4096);
        while (true) {
            Socket client = listener.accept();
            new Thread(() -> answer(client, stages)).start();
        }
    }
}
