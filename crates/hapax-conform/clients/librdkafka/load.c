/* A load for any broker, by librdkafka. Prints one line of NAME=NUMBER pairs; times are in milliseconds.
 *
 *   load produce ADDRESS TOPIC COUNT SIZE [SETTING=VALUE…]         until every record is acknowledged
 *   load consume ADDRESS TOPIC COUNT [SETTING=VALUE…]              partition 0, from its beginning
 *   load latency ADDRESS TOPIC RATE SECONDS SIZE [SETTING=VALUE…]  from produce to acknowledgement and to a consumer
 *
 * acks=all and idempotent unless a setting says otherwise; everything else is librdkafka's default. */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *why) {
    fprintf(stderr, "load: %s\n", why);
    exit(1);
}

static void *room(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) die("no memory");
    return memory;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) die(why);
}

/* Settings of the command line, NAME=VALUE each. */
static void set_all(rd_kafka_conf_t *conf, int count, char **words) {
    for (int i = 0; i < count; i++) {
        char *value = strchr(words[i], '=');
        if (!value) die("a setting is NAME=VALUE");
        *value = 0;
        set(conf, words[i], value + 1);
        *value = '=';
    }
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char why[256];
    rd_kafka_t *made = rd_kafka_new(type, conf, why, sizeof why);
    if (!made) die(why);
    return made;
}

struct samples {
    double *seconds;
    size_t count, room;
};

static struct samples samples_of(size_t most) { return (struct samples){room(most * sizeof(double)), 0, most}; }

static void add(struct samples *to, double seconds) {
    if (to->count < to->room) to->seconds[to->count++] = seconds;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_samples(const char *name, struct samples *of) {
    if (!of->count) die("nothing was measured");
    qsort(of->seconds, of->count, sizeof(double), by_size);
    printf("%s_n=%zu %s_p50=%.3f %s_p99=%.3f %s_max=%.3f ", name, of->count, name, of->seconds[of->count / 2] * 1e3, name,
           of->seconds[of->count * 99 / 100] * 1e3, name, of->seconds[of->count - 1] * 1e3);
}

static long acknowledged, failed;
static struct samples until_ack;

static void on_delivery(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
    (void)producer, (void)opaque;
    if (message->err) {
        if (!failed++) fprintf(stderr, "load: %s\n", rd_kafka_err2str(message->err));
        return;
    }
    acknowledged++;
    if (message->_private) add(&until_ack, now() - *(double *)message->_private);
}

static rd_kafka_t *producer(const char *address, const char *linger, int count, char **settings) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", address);
    set(conf, "enable.idempotence", "true");
    set(conf, "acks", "all");
    set(conf, "queue.buffering.max.messages", "1000000");
    set(conf, "queue.buffering.max.kbytes", "131072");
    if (linger) set(conf, "linger.ms", linger);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    set_all(conf, count, settings);
    return client(RD_KAFKA_PRODUCER, conf);
}

static rd_kafka_t *consumer(const char *address, const char *topic, int64_t from, int count, char **settings) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", address);
    set(conf, "group.id", "load");
    set(conf, "enable.auto.commit", "false");
    set_all(conf, count, settings);
    rd_kafka_t *made = client(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(made);
    rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(partitions, topic, 0)->offset = from;
    if (rd_kafka_assign(made, partitions)) die("no assignment");
    rd_kafka_topic_partition_list_destroy(partitions);
    return made;
}

/* A first question, so that connecting is not measured. */
static rd_kafka_topic_t *known_topic(rd_kafka_t *of, const char *name) {
    rd_kafka_topic_t *topic = rd_kafka_topic_new(of, name, NULL);
    const struct rd_kafka_metadata *found;
    if (rd_kafka_metadata(of, 0, topic, &found, 10000)) die("no metadata");
    rd_kafka_metadata_destroy(found);
    return topic;
}

static int produce(const char *address, const char *name, long count, size_t size, int more, char **settings) {
    rd_kafka_t *to = producer(address, NULL, more, settings);
    rd_kafka_topic_t *topic = known_topic(to, name);
    char *value = room(size);
    for (size_t i = 0; i < size; i++) value[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[rand() % 36];
    /* The first record waits until the producer has its id: that is a start, not a rate. */
    rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, value, size, NULL, 0, NULL);
    rd_kafka_flush(to, 10000);
    double started = now();
    for (long sent = 1; sent < count;) {
        if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, value, size, NULL, 0, NULL)) {
            rd_kafka_poll(to, 5); /* its queue is full */
        } else if (!(++sent & 1023)) {
            rd_kafka_poll(to, 0);
        }
    }
    while (acknowledged + failed < count) rd_kafka_poll(to, 50);
    double seconds = now() - started;
    printf("rate=%.0f seconds=%.3f failed=%ld\n", (double)(count - 1) / seconds, seconds, failed);
    return failed != 0;
}

static int consume(const char *address, const char *name, long count, int more, char **settings) {
    rd_kafka_t *from = consumer(address, name, RD_KAFKA_OFFSET_BEGINNING, more, settings);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(from);
    rd_kafka_message_t *messages[1000];
    double started = 0;
    for (long got = 0; got < count;) {
        ssize_t taken = rd_kafka_consume_batch_queue(queue, 1000, messages, 1000);
        for (ssize_t i = 0; i < taken; i++) {
            if (!messages[i]->err && !got++) started = now();
            rd_kafka_message_destroy(messages[i]);
        }
    }
    double seconds = now() - started;
    printf("rate=%.0f seconds=%.3f\n", (double)count / seconds, seconds);
    return 0;
}

static const char *watched_address, *watched_topic;
static atomic_int watching, watch_ended;
static struct samples until_consumer;

/* Every record begins with the time at which it was made; zero is a record that only asks whether anybody watches. */
static void *watch(void *nothing) {
    rd_kafka_t *from = consumer(watched_address, watched_topic, RD_KAFKA_OFFSET_END, 0, NULL);
    while (!watch_ended) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(from, 100);
        if (!message) continue;
        if (!message->err && message->len >= sizeof(double)) {
            double made;
            memcpy(&made, message->payload, sizeof made);
            if (made == 0) {
                watching = 1;
            } else {
                add(&until_consumer, now() - made);
            }
        }
        rd_kafka_message_destroy(message);
    }
    return nothing;
}

static int latency(const char *address, const char *name, double rate, double seconds, size_t size, int more,
                   char **settings) {
    size_t count = (size_t)(rate * seconds);
    if (size < sizeof(double)) die("a record holds its time: 8 bytes at least");
    until_ack = samples_of(count);
    until_consumer = samples_of(count);
    rd_kafka_t *to = producer(address, "0", more, settings);
    rd_kafka_topic_t *topic = known_topic(to, name);
    char *value = room(size);
    watched_address = address, watched_topic = name;
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch, NULL)) die("no thread");
    while (!watching) {
        rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, value, size, NULL, 0, NULL);
        rd_kafka_poll(to, 100);
    }
    rd_kafka_flush(to, 10000);
    double *made = room(count * sizeof *made);
    double start = now() + 0.1;
    for (size_t i = 0; i < count; i++) {
        double due = start + (double)i / rate;
        for (double left; (left = due - now()) > 0;) {
            /* Returns with the first acknowledgement, so that none waits to be counted. */
            if (left >= 0.001) {
                rd_kafka_poll(to, (int)(left * 1e3));
            } else {
                struct timespec pause = {0, (long)(left * 1e9)};
                nanosleep(&pause, NULL);
                rd_kafka_poll(to, 0);
            }
        }
        made[i] = now();
        memcpy(value, &made[i], sizeof made[i]);
        if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, value, size, NULL, 0, &made[i])) die("its queue is full");
    }
    rd_kafka_flush(to, 20000);
    struct timespec pause = {1, 0};
    nanosleep(&pause, NULL);
    watch_ended = 1;
    pthread_join(watcher, NULL);
    print_samples("ack", &until_ack);
    print_samples("e2e", &until_consumer);
    printf("failed=%ld\n", failed);
    return failed != 0;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "produce") && count >= 6)
        return produce(words[2], words[3], atol(words[4]), (size_t)atol(words[5]), count - 6, words + 6);
    if (!strcmp(what, "consume") && count >= 5) return consume(words[2], words[3], atol(words[4]), count - 5, words + 5);
    if (!strcmp(what, "latency") && count >= 7)
        return latency(words[2], words[3], atof(words[4]), atof(words[5]), (size_t)atol(words[6]), count - 7, words + 7);
    die("produce, consume or latency; the file's head says with what");
}
