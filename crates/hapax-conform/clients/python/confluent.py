"""confluent-kafka (librdkafka): every cell."""
import threading
import time

import cells
from confluent_kafka import (Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer,
                             TopicPartition)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic


def done(futures):
    for future in futures.values():
        future.result(cells.DEADLINE)


def create(bootstrap, topic, partitions):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    done(admin.create_topics([NewTopic(topic, partitions, 1)]))
    return admin


def produce(bootstrap, topic, numbers, **settings):
    """Produces the numbered records and returns (partition, offset) of each answer."""
    answers = []

    def answered(error, message):
        assert error is None, error
        answers.append((message.partition(), message.offset()))

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, **settings})
    for number in numbers:
        producer.produce(topic, cells.payload(number), str(number).encode(), headers=[("n", b"h%d" % number)],
                         on_delivery=answered)
        producer.poll(0)
    assert producer.flush(cells.DEADLINE) == 0, "flush timed out"
    return answers


def read_all(bootstrap, topic, partitions, count):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found = []
    end = time.monotonic() + cells.DEADLINE
    while len(found) < count and time.monotonic() < end:
        for message in consumer.consume(500, 0.5):
            assert message.error() is None, message.error()
            found.append((message.partition(), message.offset(), message.key(), message.value(),
                          dict(message.headers())["n"]))
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), cells.DEADLINE)[1] for p in range(partitions)]
    consumer.close()
    assert sum(ends) == count, f"the log ends at {ends}"
    return found


def compression(bootstrap, topic, codec):
    create(bootstrap, topic, 2)
    # Without sequences a request that is retried is overtaken by those behind it: one at a time.
    settings = {"compression.type": codec, "enable.idempotence": False, "max.in.flight.requests.per.connection": 1}
    produce(bootstrap, topic, range(cells.RECORDS), **settings)
    cells.check_records(read_all(bootstrap, topic, 2, cells.RECORDS), cells.RECORDS)
    return f"{cells.RECORDS} records"


def idempotent(bootstrap, topic):
    create(bootstrap, topic, 2)
    settings = {"enable.idempotence": True, "batch.num.messages": 20, "retry.backoff.ms": 50,
                "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
    answers = produce(bootstrap, topic, range(cells.RECORDS), **settings)
    assert len(set(answers)) == cells.RECORDS, f"{len(set(answers))} different offsets were answered"
    cells.check_records(read_all(bootstrap, topic, 2, cells.RECORDS), cells.RECORDS)
    return f"{cells.RECORDS} records, each once though answers were lost"


class Member(threading.Thread):
    """One member: what it processed is done when its offset is committed."""

    def __init__(self, bootstrap, topic, all_done):
        super().__init__(daemon=True)
        self.consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "session.timeout.ms": 45000, "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": "cooperative-sticky"})
        self.topic, self.all_done, self.pending = topic, all_done, []
        self.stop, self.assigned, self.error = threading.Event(), 0, None

    def commit(self):
        if self.pending:
            self.consumer.commit(asynchronous=False)
            self.all_done.extend(self.pending)
            self.pending = []

    def revoked(self, consumer, partitions):
        self.commit()
        consumer.incremental_unassign(partitions)
        self.assigned -= len(partitions)

    def given(self, consumer, partitions):
        consumer.incremental_assign(partitions)
        self.assigned += len(partitions)

    def run(self):
        try:
            self.consumer.subscribe([self.topic], on_assign=self.given, on_revoke=self.revoked)
            while not self.stop.is_set():
                for message in self.consumer.consume(50, 0.1):
                    assert message.error() is None, message.error()
                    self.pending.append((message.partition(), message.offset()))
                try:
                    self.commit()
                except KafkaException as error:  # a rebalance is under way: commit with the next round
                    assert error.args[0].name() in ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"), error
            self.consumer.close()
        except BaseException as error:
            self.error = error


def group(bootstrap, topic):
    admin = create(bootstrap, topic, 4)
    all_done, count = cells.share(lambda done: Member(bootstrap, topic, done),
                                  lambda numbers: produce(bootstrap, topic, numbers))
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic)])[topic].result(cells.DEADLINE)
    done(admin.delete_consumer_groups([topic]))
    return cells.check_group(all_done, {p.partition: p.offset for p in offsets.topic_partitions}, count)


def admin_cell(bootstrap, topic):
    admin = create(bootstrap, topic, 2)
    # Apache Kafka answers the creation before all of it knows the topic.
    cells.until(lambda: topic in admin.list_topics(timeout=cells.DEADLINE).topics, "the topic is listed")
    done(admin.create_partitions([NewPartitions(topic, 3)]))
    cells.until(lambda: len(admin.list_topics(topic, cells.DEADLINE).topics[topic].partitions) == 3, "three partitions")
    change = ConfigEntry("retention.ms", "1234567", incremental_operation=AlterConfigOpType.SET)
    done(admin.incremental_alter_configs([ConfigResource("topic", topic, incremental_configs=[change])]))
    resource = ConfigResource("topic", topic)
    config = admin.describe_configs([resource])[resource].result(cells.DEADLINE)
    assert config["retention.ms"].value == "1234567", config["retention.ms"].value
    assert config["cleanup.policy"].value == "delete", config["cleanup.policy"].value
    assert admin.describe_cluster().result(cells.DEADLINE).controller is not None
    try:
        create(bootstrap, topic, 1)
        raise AssertionError("the topic was created twice")
    except KafkaException as error:
        assert error.args[0].name() == "TOPIC_ALREADY_EXISTS", error
    done(admin.delete_topics([topic]))
    cells.until(lambda: topic not in admin.list_topics(timeout=cells.DEADLINE).topics, "the topic is gone")
    return "create, list, describe, grow, alter config, delete"


def seek_by_time(bootstrap, topic):
    create(bootstrap, topic, 1)
    start = 1_700_000_000_000
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=start + number * 1000)
    assert producer.flush(cells.DEADLINE) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    for asked, expected in [(start, 0), (start + 41_500, 42), (start + 42_000, 42), (start - 5, 0)]:
        [found] = consumer.offsets_for_times([TopicPartition(topic, 0, asked)], cells.DEADLINE)
        assert found.offset == expected, f"{asked - start}: {found.offset}, not {expected}"
    [late] = consumer.offsets_for_times([TopicPartition(topic, 0, start + 1_000_000)], cells.DEADLINE)
    assert late.offset in (-1, 100), f"after the end: {late.offset}"
    consumer.assign([TopicPartition(topic, 0, 42)])
    message = consumer.poll(cells.DEADLINE)
    assert message.value() == b"42" and message.timestamp()[1] == start + 42_000, message.value()
    consumer.close()
    return "offsets of five times, and a read from there"


def transaction(bootstrap, topic):
    """A broker without transactions must say so, and not leave the client to its timeout."""
    create(bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    try:
        producer.init_transactions(cells.DEADLINE)
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, error
        return "refused"
    producer.begin_transaction()
    producer.produce(topic, b"1")
    producer.commit_transaction(cells.DEADLINE)
    return "committed"


def cell(name, bootstrap, topic):
    if name in cells.COMPRESSIONS:
        return compression(bootstrap, topic, name)
    return {"idempotent": idempotent, "group": group, "admin": admin_cell, "time": seek_by_time,
            "transaction": transaction}[name](bootstrap, topic)


cells.main(cell)
