"""kafka-python: every cell."""
import logging
import threading

import cells
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError, TopicAlreadyExistsError

logging.getLogger("kafka").setLevel(logging.CRITICAL)


def create(bootstrap, topic, partitions):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
    # Apache Kafka's broker learns of it a moment later; a member that comes before that waits for minutes.
    cells.until(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == partitions, "the topic is there")
    return admin


def produce(bootstrap, topic, numbers, **settings):
    """Produces the numbered records and returns (partition, offset) of each answer."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=2, **settings)
    sent = [producer.send(topic, cells.payload(number), str(number).encode(), [("n", b"h%d" % number)])
            for number in numbers]
    producer.flush(cells.DEADLINE)
    answers = [(answer.get(cells.DEADLINE).partition, answer.get().offset) for answer in sent]
    producer.close()
    return answers


def read_all(bootstrap, topic, partitions, count):
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=int(cells.DEADLINE * 1000))
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    ends = consumer.end_offsets(places)
    assert sum(ends.values()) == count, f"the log ends at {ends}"
    found = []
    for record in consumer:
        found.append((record.partition, record.offset, record.key, record.value, dict(record.headers)["n"]))
        if len(found) == count:
            break
    consumer.close()
    return found


def compression(bootstrap, topic, codec):
    create(bootstrap, topic, 2).close()
    # Without sequences a request that is retried is overtaken by those behind it: one at a time.
    settings = {"compression_type": None if codec == "none" else codec, "enable_idempotence": False,
                "max_in_flight_requests_per_connection": 1}
    produce(bootstrap, topic, range(cells.RECORDS), **settings)
    cells.check_records(read_all(bootstrap, topic, 2, cells.RECORDS), cells.RECORDS)
    return f"{cells.RECORDS} records"


def idempotent(bootstrap, topic):
    create(bootstrap, topic, 2).close()
    settings = {"enable_idempotence": True, "batch_size": 2000, "retry_backoff_ms": 50, "reconnect_backoff_ms": 20,
                "reconnect_backoff_max_ms": 100}
    answers = produce(bootstrap, topic, range(cells.RECORDS), **settings)
    assert len(set(answers)) == cells.RECORDS, f"{len(set(answers))} different offsets were answered"
    cells.check_records(read_all(bootstrap, topic, 2, cells.RECORDS), cells.RECORDS)
    return f"{cells.RECORDS} records, each once though answers were lost"


class Member(threading.Thread, ConsumerRebalanceListener):
    """One member: what it processed is done when its offset is committed."""

    def __init__(self, bootstrap, topic, partitions, all_done):
        super().__init__(daemon=True)
        self.consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False,
                                      auto_offset_reset="earliest", session_timeout_ms=45_000,
                                      heartbeat_interval_ms=500, metadata_max_age_ms=2000)
        self.consumer.subscribe([topic], listener=self)
        # A member that learns of the topic after it has joined joins again, and if `poll` ends while it does so (a slow
        # machine), version 3.0.12 forgets that it was about to, and waits for ever: so it knows the topic before it joins.
        cells.until(lambda: len(self.consumer.partitions_for_topic(topic)) == partitions, "the member knows the topic")
        self.all_done, self.pending = all_done, []
        self.stop, self.assigned, self.error = threading.Event(), 0, None

    def commit(self):
        if self.pending:
            self.consumer.commit()
            self.all_done.extend(self.pending)
            self.pending = []

    def on_partitions_revoked(self, revoked):
        try:
            self.commit()
        except KafkaError:
            pass  # somebody else has these by now, and reads from the last commit
        self.pending, self.assigned = [], 0

    def on_partitions_assigned(self, assigned):
        self.assigned = len(assigned)

    def run(self):
        try:
            while not self.stop.is_set():
                for records in self.consumer.poll(1000, max_records=50).values():
                    self.pending.extend((record.partition, record.offset) for record in records)
                try:
                    self.commit()
                except RebalanceInProgressError:
                    pass  # committed with the next round, or given back before it
                except CommitFailedError:
                    self.pending = []  # the group went on without us: whoever has these now reads from the last commit
            self.consumer.close()
        except BaseException as error:
            self.error = error


def group(bootstrap, topic):
    admin = create(bootstrap, topic, 4)
    all_done, count = cells.share(lambda done: Member(bootstrap, topic, 4, done),
                                  lambda numbers: produce(bootstrap, topic, numbers))
    offsets = admin.list_group_offsets([topic])[topic]
    admin.delete_groups([topic])
    admin.close()
    return cells.check_group(all_done, {place.partition: found.offset for place, found in offsets.items()}, count)


def admin_cell(bootstrap, topic):
    admin = create(bootstrap, topic, 2)
    cells.until(lambda: topic in admin.list_topics(), "the topic is listed")
    admin.create_partitions({topic: 3})
    cells.until(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 3, "three partitions")
    admin.alter_configs([ConfigResource("topic", topic, {"retention.ms": "1234567"})])

    def value(name):
        found = admin.describe_configs([ConfigResource("topic", topic)], config_filter="all")
        return found["topic"][topic][name]["value"]

    cells.until(lambda: value("retention.ms") == "1234567", "the changed configuration")
    assert value("cleanup.policy") == "delete", value("cleanup.policy")
    assert admin.describe_cluster()["controller_id"] >= 0, "no controller"
    assert admin.describe_log_dirs(), "no log directory"
    try:
        create(bootstrap, topic, 1)
        raise AssertionError("the topic was created twice")
    except TopicAlreadyExistsError:
        pass
    admin.delete_topics([topic])
    cells.until(lambda: topic not in admin.list_topics(), "the topic is gone")
    admin.close()
    return "create, list, describe, grow, alter config, delete"


def seek_by_time(bootstrap, topic):
    create(bootstrap, topic, 1).close()
    start = 1_700_000_000_000
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(100):
        producer.send(topic, b"%d" % number, partition=0, timestamp_ms=start + number * 1000)
    producer.close(cells.DEADLINE)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=int(cells.DEADLINE * 1000))
    place = TopicPartition(topic, 0)
    for asked, expected in [(start, 0), (start + 41_500, 42), (start + 42_000, 42), (start - 5, 0)]:
        found = consumer.offsets_for_times({place: asked})[place]
        assert found.offset == expected, f"{asked - start}: {found}, not {expected}"
    assert consumer.offsets_for_times({place: start + 1_000_000})[place] is None, "a time after the end"
    consumer.assign([place])
    consumer.seek(place, 42)
    record = next(consumer)
    assert record.value == b"42" and record.timestamp == start + 42_000, record
    consumer.close()
    return "offsets of five times, and a read from there"


def cell(name, bootstrap, topic):
    if name in cells.COMPRESSIONS:
        return compression(bootstrap, topic, name)
    return {"idempotent": idempotent, "group": group, "admin": admin_cell, "time": seek_by_time}[name](bootstrap, topic)


cells.main(cell)
