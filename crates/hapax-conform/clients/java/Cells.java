import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

/** Apache Kafka's Java client: every cell. Called as: BOOTSTRAP FLAKY PREFIX CELL...; one line of output per cell. */
public class Cells {
    static final int RECORDS = 600;
    static final Duration DEADLINE = Duration.ofSeconds(300);

    public static void main(String[] arguments) {
        for (String cell : List.of(arguments).subList(3, arguments.length)) {
            String topic = arguments[2] + "-" + cell;
            try {
                System.out.println(cell + " pass " + run(cell, arguments[cell.equals("idempotent") ? 1 : 0], topic));
            } catch (Throwable error) {
                error.printStackTrace();
                System.out.println(cell + " fail " + String.valueOf(error).replace('\n', ' '));
            }
        }
        System.exit(0);
    }

    static String run(String cell, String bootstrap, String topic) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            switch (cell) {
                case "idempotent": return idempotent(admin, bootstrap, topic);
                case "group": return group(admin, bootstrap, topic);
                case "admin": return admin(admin, topic);
                case "time": return time(admin, bootstrap, topic);
                case "transaction": return transaction(admin, bootstrap, topic);
                default: return compression(admin, bootstrap, topic, cell);
            }
        }
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static void until(Callable<Boolean> condition, String what) throws Exception {
        long end = System.nanoTime() + DEADLINE.toNanos();
        while (!condition.call()) {
            check(System.nanoTime() < end, "timed out: " + what);
            Thread.sleep(10);
        }
    }

    static void create(Admin admin, String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    static byte[] payload(int number) {
        return String.format("value %05d ", number).repeat(8).getBytes();
    }

    /** Produces the numbered records; returns how many different (partition, offset) were answered. */
    static int produce(String bootstrap, String topic, int from, int upto, Map<String, Object> more) throws Exception {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        Set<String> answers = new HashSet<>();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = from; number < upto; number++) {
                var header = new RecordHeader("n", ("h" + number).getBytes());
                sent.add(producer.send(new ProducerRecord<>(topic, null, null, "" + number, payload(number), List.of(header))));
            }
            for (var answer : sent) answers.add(answer.get().partition() + ":" + answer.get().offset());
        }
        return answers.size();
    }

    static KafkaConsumer<String, byte[]> consumer(String bootstrap, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new ByteArrayDeserializer());
    }

    static List<TopicPartition> partitions(String topic, int count) {
        List<TopicPartition> all = new ArrayList<>();
        for (int index = 0; index < count; index++) all.add(new TopicPartition(topic, index));
        return all;
    }

    /** Reads the topic to its end: each record once, in order, with all its parts. */
    static void verify(String bootstrap, String topic, int partitions, int count) {
        Set<Integer> numbers = new HashSet<>();
        Map<Integer, int[]> last = new HashMap<>();
        try (var consumer = consumer(bootstrap, Map.of())) {
            var all = partitions(topic, partitions);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            long total = consumer.endOffsets(all).values().stream().mapToLong(end -> end).sum();
            check(total == count, "the log holds " + total + " records, not " + count);
            long end = System.nanoTime() + DEADLINE.toNanos();
            for (int read = 0; read < count; ) {
                check(System.nanoTime() < end, "timed out after " + read + " records");
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    int number = Integer.parseInt(record.key());
                    check(Arrays.equals(record.value(), payload(number)), "value of " + number);
                    check(new String(record.headers().lastHeader("n").value()).equals("h" + number), "header of " + number);
                    int[] before = last.getOrDefault(record.partition(), new int[] {-1, -1});
                    check(record.offset() == before[0] + 1 && number > before[1], "order at " + record.partition() + ":" + record.offset());
                    last.put(record.partition(), new int[] {(int) record.offset(), number});
                    check(numbers.add(number), number + " is there twice");
                    read++;
                }
            }
        }
    }

    static String compression(Admin admin, String bootstrap, String topic, String codec) throws Exception {
        create(admin, topic, 2);
        // Without sequences a request that is retried is overtaken by those behind it: one at a time.
        produce(bootstrap, topic, 0, RECORDS, Map.of("compression.type", codec, "enable.idempotence", false, "linger.ms", 2,
            "max.in.flight.requests.per.connection", 1));
        verify(bootstrap, topic, 2, RECORDS);
        return RECORDS + " records";
    }

    static String idempotent(Admin admin, String bootstrap, String topic) throws Exception {
        create(admin, topic, 2);
        Map<String, Object> settings = Map.of("enable.idempotence", true, "batch.size", 2000, "retry.backoff.ms", 50,
            "reconnect.backoff.ms", 20, "reconnect.backoff.max.ms", 100);
        int answers = produce(bootstrap, topic, 0, RECORDS, settings);
        check(answers == RECORDS, answers + " different offsets were answered");
        verify(bootstrap, topic, 2, RECORDS);
        return RECORDS + " records, each once though answers were lost";
    }

    /** One member: what it processed is done when its offset is committed. */
    static class Member extends Thread implements ConsumerRebalanceListener {
        final KafkaConsumer<String, byte[]> consumer;
        final Queue<String> done;
        final List<ConsumerRecord<String, byte[]>> pending = new ArrayList<>();
        volatile boolean stop;
        volatile int assigned;
        volatile Throwable error;

        Member(String bootstrap, String topic, Queue<String> done) {
            consumer = consumer(bootstrap, Map.of("group.id", topic, "group.protocol", "classic", "heartbeat.interval.ms", 500,
                "session.timeout.ms", 45000, "partition.assignment.strategy", CooperativeStickyAssignor.class.getName()));
            this.done = done;
            consumer.subscribe(List.of(topic), this);
            start();
        }

        void commit() {
            consumer.commitSync();
            for (var record : pending) done.add(record.partition() + ":" + record.offset());
            pending.clear();
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit();
        }

        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assigned = consumer.assignment().size();
        }

        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            pending.removeIf(record -> partitions.contains(new TopicPartition(record.topic(), record.partition())));
        }

        public void run() {
            try {
                while (!stop) {
                    for (var record : consumer.poll(Duration.ofMillis(100))) pending.add(record);
                    assigned = consumer.assignment().size();
                    try {
                        commit();
                    } catch (RebalanceInProgressException soon) {
                        // Committed with the next round.
                    }
                }
                consumer.close();
            } catch (Throwable error) {
                this.error = error;
            }
        }

        boolean fine() {
            if (error != null) throw new AssertionError("a member failed: " + error, error);
            return true;
        }
    }

    static String group(Admin admin, String bootstrap, String topic) throws Exception {
        create(admin, topic, 4);
        int third = 300;
        Queue<String> done = new ConcurrentLinkedQueue<>();
        Member first = new Member(bootstrap, topic, done);
        produce(bootstrap, topic, 0, third, Map.of());
        until(() -> first.fine() && done.size() >= third, "the first member reads");
        Member second = new Member(bootstrap, topic, done);
        produce(bootstrap, topic, third, 2 * third, Map.of());
        until(() -> first.fine() && second.fine() && first.assigned == 2 && second.assigned == 2, "two members share");
        until(() -> first.fine() && second.fine() && done.size() >= 2 * third, "two members read");
        first.stop = true;
        Member last = new Member(bootstrap, topic, done);
        produce(bootstrap, topic, 2 * third, 3 * third, Map.of());
        until(() -> second.fine() && last.fine() && done.size() >= 3 * third, "the others take over");
        for (Member member : List.of(second, last)) member.stop = true;
        for (Member member : List.of(first, second, last)) {
            member.join();
            member.fine();
        }
        check(new HashSet<>(done).size() == 3 * third, new HashSet<>(done).size() + " records were processed");
        check(done.size() == 3 * third, done.size() - 3 * third + " records were processed twice");
        long committed = admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().values().stream()
            .mapToLong(OffsetAndMetadata::offset).sum();
        check(committed == 3 * third, "committed " + committed);
        admin.deleteConsumerGroups(List.of(topic)).all().get();
        return 3 * third + " records, each processed once by committed offsets, 3 members";
    }

    static String admin(Admin admin, String topic) throws Exception {
        create(admin, topic, 2);
        until(() -> admin.listTopics().names().get().contains(topic), "the topic is listed");
        var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        check(described.partitions().size() == 2 && described.partitions().get(0).leader() != null, "" + described);
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        until(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 3, "three partitions");
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var change = new AlterConfigOp(new ConfigEntry("retention.ms", "1234567"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        until(() -> {
            var config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            return config.get("retention.ms").value().equals("1234567") && config.get("cleanup.policy").value().equals("delete");
        }, "the changed configuration");
        check(admin.describeCluster().controller().get() != null, "no controller");
        check(!admin.describeLogDirs(List.of(described.partitions().get(0).leader().id())).allDescriptions().get().isEmpty(), "no log directory");
        try {
            create(admin, topic, 1);
            throw new AssertionError("the topic was created twice");
        } catch (ExecutionException error) {
            check(error.getCause() instanceof TopicExistsException, "" + error);
        }
        admin.deleteTopics(List.of(topic)).all().get();
        until(() -> !admin.listTopics().names().get().contains(topic), "the topic is gone");
        return "create, list, describe, grow, alter config, delete";
    }

    /** A broker without transactions must say so, and not leave the client to its timeout. */
    static String transaction(Admin admin, String bootstrap, String topic) throws Exception {
        create(admin, topic, 1);
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "transactional.id", topic,
                "max.block.ms", DEADLINE.toMillis());
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "1", payload(1)));
            producer.commitTransaction();
            return "committed";
        } catch (TransactionalIdAuthorizationException refused) {
            return "refused";
        }
    }

    static String time(Admin admin, String bootstrap, String topic) throws Exception {
        create(admin, topic, 1);
        long start = 1_700_000_000_000L;
        var partition = new TopicPartition(topic, 0);
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < 100; number++)
                producer.send(new ProducerRecord<>(topic, 0, start + number * 1000L, "" + number, payload(number)));
        }
        try (var consumer = consumer(bootstrap, Map.of())) {
            for (long[] pair : new long[][] {{0, 0}, {41_500, 42}, {42_000, 42}, {-5, 0}}) {
                var found = consumer.offsetsForTimes(Map.of(partition, start + pair[0])).get(partition);
                check(found.offset() == pair[1], pair[0] + ": " + found);
            }
            check(consumer.offsetsForTimes(Map.of(partition, start + 1_000_000)).get(partition) == null, "a time after the end");
            consumer.assign(List.of(partition));
            consumer.seek(partition, 42);
            var record = consumer.poll(DEADLINE).iterator().next();
            check(record.key().equals("42") && record.timestamp() == start + 42_000, "" + record);
        }
        var greatest = admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).partitionResult(partition).get();
        check(greatest.offset() == 99 && greatest.timestamp() == start + 99_000, "" + greatest);
        return "offsets of five times, the greatest time, and a read from there";
    }
}
