import java.io.*;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.stream.*;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.*;
import org.apache.kafka.tools.consumer.ConsoleConsumer;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/**
 * Apache Kafka's command-line tools: their own main methods, one after another in one JVM.
 * Called as: BOOTSTRAP FLAKY PREFIX CELL...; one line of output per cell.
 */
public class Tools {
    static final int RECORDS = 600;
    static final PrintStream OUT = System.out;
    static String bootstrap;
    /** What the tool wanted to end with first: some catch the end and want another one. */
    static Integer code;
    /** What the tool wanted done at the end: the console producer flushes there. */
    static final List<Runnable> HOOKS = new ArrayList<>();

    interface Main {
        void run(String[] arguments) throws Exception;
    }

    /** A tool wants to end the process. */
    static class Ended extends RuntimeException {
        Ended(int wanted) {
            super("exit code " + wanted, null, false, false);
            if (code == null) code = wanted;
        }
    }

    public static void main(String[] arguments) {
        Exit.setExitProcedure((code, message) -> { throw new Ended(code); });
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        Exit.setHaltProcedure((code, message) -> { throw new Ended(code); });
        for (String cell : List.of(arguments).subList(3, arguments.length)) {
            bootstrap = arguments[cell.equals("idempotent") ? 1 : 0];
            try {
                String said = run(cell, arguments[2] + "-" + cell);
                OUT.println(cell + " pass " + said);
            } catch (Throwable error) {
                error.printStackTrace();
                OUT.println(cell + " fail " + String.valueOf(error).replace('\n', ' '));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    static String run(String cell, String topic) throws Exception {
        switch (cell) {
            case "idempotent": return idempotent(topic);
            case "group": return group(topic);
            case "admin": return admin(topic);
            case "time": return time(topic);
            default: return compression(topic, cell);
        }
    }

    static void until(Callable<Boolean> condition, String what) throws Exception {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!condition.call()) {
            check(System.nanoTime() < end, "timed out: " + what);
            Thread.sleep(10);
        }
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    /** Runs a tool on some input and returns what it printed. */
    static String tool(String input, Main main, String... arguments) throws Exception {
        var printed = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(input.getBytes()));
        System.setOut(new PrintStream(printed, true));
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", bootstrap));
        all.addAll(List.of(arguments));
        code = null;
        try {
            main.run(all.toArray(String[]::new));
        } catch (Ended ended) {
            check(code == 0, String.join(" ", arguments) + " ended with " + code + ": " + printed);
        } finally {
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
            System.setOut(OUT);
        }
        return printed.toString();
    }

    static String topics(String... arguments) throws Exception {
        return tool("", TopicCommand::main, arguments);
    }

    static void create(String topic, int partitions) throws Exception {
        topics("--create", "--topic", topic, "--partitions", "" + partitions, "--replication-factor", "1");
    }

    static String lines(int from, int upto) {
        return IntStream.range(from, upto).mapToObj(n -> n + ":value " + n + "\n").collect(Collectors.joining());
    }

    static void write(String topic, int from, int upto, String... more) throws Exception {
        var arguments = new ArrayList<>(List.of("--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"));
        arguments.addAll(List.of(more));
        tool(lines(from, upto), ConsoleProducer::main, arguments.toArray(String[]::new));
    }

    static List<String> read(String topic, int count, String... more) throws Exception {
        var arguments = new ArrayList<>(List.of("--topic", topic, "--max-messages", "" + count, "--timeout-ms", "300000",
            "--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"));
        arguments.addAll(List.of(more));
        return tool("", ConsoleConsumer::main, arguments.toArray(String[]::new)).lines().collect(Collectors.toList());
    }

    static void verify(String topic, List<String> found) throws Exception {
        var expected = lines(0, RECORDS).lines().sorted().collect(Collectors.toList());
        check(found.stream().sorted().collect(Collectors.toList()).equals(expected), found.size() + " other records were read");
        check(ends(topic) == RECORDS, "the log ends at " + ends(topic));
    }

    static long ends(String topic) throws Exception {
        String said = tool("", GetOffsetShell::main, "--topic", topic);
        return said.lines().mapToLong(line -> Long.parseLong(line.substring(line.lastIndexOf(':') + 1))).sum();
    }

    static String compression(String topic, String codec) throws Exception {
        create(topic, 2);
        write(topic, 0, RECORDS, "--compression-codec", codec, "--command-property", "enable.idempotence=false");
        verify(topic, read(topic, RECORDS, "--from-beginning"));
        return RECORDS + " records by kafka-console-producer and -consumer";
    }

    static String idempotent(String topic) throws Exception {
        create(topic, 2);
        write(topic, 0, RECORDS, "--command-property", "enable.idempotence=true", "--batch-size", "400", "--retry-backoff-ms", "50",
            "--message-send-max-retries", "1000", "--command-property", "reconnect.backoff.max.ms=100");
        verify(topic, read(topic, RECORDS, "--from-beginning"));
        return RECORDS + " records, each once though answers were lost";
    }

    static String group(String topic) throws Exception {
        create(topic, 2);
        write(topic, 0, RECORDS);
        List<String> found = new ArrayList<>();
        for (int member = 0; member < 3; member++) {
            found.addAll(read(topic, RECORDS / 3, "--group", topic, "--from-beginning"));
        }
        verify(topic, found);
        String described = tool("", ConsumerGroupCommand::main, "--describe", "--group", topic);
        long lags = described.lines().filter(line -> line.startsWith(topic)).mapToLong(line -> Long.parseLong(line.trim().split(" +")[5])).sum();
        check(described.contains(topic) && lags == 0, "lag " + lags + ": " + described);
        check(tool("", ConsumerGroupCommand::main, "--list").contains(topic), "the group is not listed");
        tool("", ConsumerGroupCommand::main, "--delete", "--group", topic);
        check(!tool("", ConsumerGroupCommand::main, "--list").contains(topic), "the group is still listed");
        return RECORDS + " records, each once, 3 members one after another; kafka-consumer-groups sees no lag";
    }

    static String admin(String topic) throws Exception {
        create(topic, 2);
        // Apache Kafka answers a change before all of it knows.
        until(() -> topics("--list").lines().anyMatch(topic::equals), "the topic is listed");
        topics("--alter", "--topic", topic, "--partitions", "3");
        until(() -> topics("--describe", "--topic", topic).contains("PartitionCount: 3"), "three partitions");
        tool("", kafka.admin.ConfigCommand::main, "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "retention.ms=1234567");
        String config = tool("", kafka.admin.ConfigCommand::main, "--describe", "--entity-type", "topics", "--entity-name", topic);
        check(config.contains("retention.ms=1234567"), config);
        check(tool("", LogDirsCommand::main, "--describe", "--topic-list", topic).contains(topic), "kafka-log-dirs does not know the topic");
        check(tool("", BrokerApiVersionsCommand::main).contains("Produce(0)"), "kafka-broker-api-versions says little");
        topics("--delete", "--topic", topic);
        check(topics("--list").lines().noneMatch(topic::equals), "the topic is still listed");
        return "create, list, describe, grow, alter config, delete; log directories, versions";
    }

    static String time(String topic) throws Exception {
        create(topic, 1);
        write(topic, 0, 100);
        Thread.sleep(50);
        String between = java.time.Instant.now().toString();
        Thread.sleep(50);
        write(topic, 100, 200);
        String reset = tool("", ConsumerGroupCommand::main, "--group", topic, "--topic", topic, "--reset-offsets", "--to-datetime",
            between.substring(0, 23) + "Z", "--execute");
        var found = read(topic, 100, "--group", topic);
        check(found.equals(lines(100, 200).lines().collect(Collectors.toList())), between + ": " + reset + found);
        String said = tool("", GetOffsetShell::main, "--topic", topic, "--time", "max-timestamp");
        check(said.trim().matches(topic + ":0:1\\d\\d"), said);
        return "kafka-consumer-groups --reset-offsets --to-datetime, and a read from there";
    }
}
