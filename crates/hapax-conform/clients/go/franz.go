package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct{}

func franzClient(bootstrap string, options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap)}, options...)...)
	try(err)
	return made
}

func within() context.Context {
	// The whole program ends soon: nothing is gained by cancelling early.
	soon, _ := context.WithTimeout(context.Background(), deadline) //nolint
	return soon
}

func franzCreate(bootstrap, topic string, partitions int32) *kadm.Client {
	admin := kadm.NewClient(franzClient(bootstrap))
	_, err := admin.CreateTopic(within(), partitions, 1, nil, topic)
	try(err)
	return admin
}

// franzProduce produces the numbered records and counts the different places that were answered.
func franzProduce(bootstrap, topic string, from, upto int, options ...kgo.Opt) int {
	producer := franzClient(bootstrap, options...)
	defer producer.Close()
	var sent []*kgo.Record
	for number := from; number < upto; number++ {
		sent = append(sent, &kgo.Record{Topic: topic, Key: []byte(fmt.Sprint(number)), Value: payload(number),
			Headers: []kgo.RecordHeader{{Key: "n", Value: []byte(fmt.Sprintf("h%d", number))}}})
	}
	places := map[string]bool{}
	for _, result := range producer.ProduceSync(within(), sent...) {
		try(result.Err)
		places[fmt.Sprintf("%d:%d", result.Record.Partition, result.Record.Offset)] = true
	}
	return len(places)
}

func franzVerify(bootstrap, topic string) {
	consumer := franzClient(bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer consumer.Close()
	ends, err := kadm.NewClient(consumer).ListEndOffsets(within(), topic)
	try(err)
	total := int64(0)
	ends.Each(func(end kadm.ListedOffset) { total += end.Offset })
	check(total == records, "the log holds %d records", total)
	read := newReading()
	for len(read.numbers) < records {
		fetched := consumer.PollFetches(within())
		try(fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) { read.see(r.Partition, r.Offset, r.Key, r.Value, r.Headers[0].Value) })
	}
}

func (franz) compression(bootstrap, topic, codec string) {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	franzCreate(bootstrap, topic, 2).Close()
	franzProduce(bootstrap, topic, 0, records, kgo.ProducerBatchCompression(codecs[codec]), kgo.DisableIdempotentWrite())
	franzVerify(bootstrap, topic)
}

func (franz) idempotent(bootstrap, topic string) {
	franzCreate(bootstrap, topic, 2).Close()
	backoff := func(int) time.Duration { return 50 * time.Millisecond }
	places := franzProduce(bootstrap, topic, 0, records, kgo.ProducerBatchMaxBytes(1500),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RetryBackoffFn(backoff))
	check(places == records, "%d different offsets were answered", places)
	franzVerify(bootstrap, topic)
}

// franzMember processes until stopped: a record is done when its offset is committed.
type franzMember struct {
	consumer *kgo.Client
	assigned atomic.Int32
	stop     context.CancelFunc
	ended    chan any
}

func newFranzMember(bootstrap, topic string, done *processed) *franzMember {
	running, stop := context.WithCancel(context.Background())
	member := &franzMember{stop: stop, ended: make(chan any, 1)}
	count := func(by int32) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			member.assigned.Add(by * int32(len(parts[topic])))
		}
	}
	member.consumer = franzClient(bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.SessionTimeout(45*time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)), kgo.OnPartitionsLost(count(-1)))
	go func() {
		defer func() { member.ended <- recover() }()
		for running.Err() == nil {
			// Rebalances wait until AllowRebalance: nothing moves between the poll and its commit.
			fetched := member.consumer.PollRecords(running, 50)
			if len(fetched.Records()) > 0 {
				try(member.consumer.CommitRecords(within(), fetched.Records()...))
			}
			fetched.EachRecord(func(r *kgo.Record) { done.add(r.Partition, r.Offset) })
			member.consumer.AllowRebalance()
		}
		member.consumer.Close()
	}()
	return member
}

func (m *franzMember) leave() {
	m.stop()
	problem := <-m.ended
	check(problem == nil, "a member failed: %v", problem)
}

func (franz) group(bootstrap, topic string) string {
	admin := franzCreate(bootstrap, topic, 4)
	defer admin.Close()
	third, done := 300, newProcessed()
	first := newFranzMember(bootstrap, topic, done)
	franzProduce(bootstrap, topic, 0, third)
	until("the first member reads", func() bool { return done.count() >= third })
	second := newFranzMember(bootstrap, topic, done)
	franzProduce(bootstrap, topic, third, 2*third)
	until("two members share", func() bool { return first.assigned.Load() == 2 && second.assigned.Load() == 2 })
	until("two members read", func() bool { return done.count() >= 2*third })
	last := newFranzMember(bootstrap, topic, done)
	first.leave()
	franzProduce(bootstrap, topic, 2*third, 3*third)
	until("the others take over", func() bool { return done.count() >= 3*third })
	second.leave()
	last.leave()
	committed, offsets := int64(0), must(admin.FetchOffsets(within(), topic))
	offsets.Each(func(o kadm.OffsetResponse) { committed += o.At })
	must(admin.DeleteGroup(within(), topic))
	return done.verify(3*third, committed)
}

func must[T any](value T, err error) T {
	try(err)
	return value
}

func (franz) admin(bootstrap, topic string) {
	admin := franzCreate(bootstrap, topic, 2)
	defer admin.Close()
	count := func() int { return len(must(admin.ListTopics(within()))[topic].Partitions) }
	until("the topic is listed", func() bool { return count() == 2 })
	try(must(admin.UpdatePartitions(within(), 3, topic)).Error())
	until("three partitions", func() bool { return count() == 3 })
	value := "1234567"
	altered := must(admin.AlterTopicConfigs(within(), []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, topic))
	try(altered[0].Err)
	config := func(name string) string {
		for _, entry := range must(admin.DescribeTopicConfigs(within(), topic))[0].Configs {
			if entry.Key == name {
				return entry.MaybeValue()
			}
		}
		return "(none)"
	}
	until("the changed configuration", func() bool { return config("retention.ms") == value })
	check(config("cleanup.policy") == "delete", "cleanup.policy is %s", config("cleanup.policy"))
	check(must(admin.BrokerMetadata(within())).Controller >= 0, "no controller")
	check(len(must(admin.DescribeAllLogDirs(within(), nil))) > 0, "no log directory")
	_, err := admin.CreateTopic(within(), 1, 1, nil, topic)
	check(err == kerr.TopicAlreadyExists, "the topic was created twice: %v", err)
	try(must(admin.DeleteTopics(within(), topic)).Error())
	until("the topic is gone", func() bool { return !must(admin.ListTopics(within())).Has(topic) })
}

func (franz) seekByTime(bootstrap, topic string) {
	admin := franzCreate(bootstrap, topic, 1)
	defer admin.Close()
	producer := franzClient(bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	for number := 0; number < 100; number++ {
		at := time.UnixMilli(begin + int64(number)*1000)
		record := &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint(number)), Timestamp: at}
		producer.Produce(within(), record, func(_ *kgo.Record, err error) { try(err) })
	}
	try(producer.Flush(within()))
	for asked, expected := range map[int64]int64{0: 0, 41_500: 42, 42_000: 42, -5: 0, 1_000_000: 100} {
		listed := must(admin.ListOffsetsAfterMilli(within(), begin+asked, topic))
		found, _ := listed.Lookup(topic, 0)
		check(found.Err == nil && found.Offset == expected, "%d: %+v", asked, found)
	}
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AfterMilli(begin + 41_500)}}
	consumer := franzClient(bootstrap, kgo.ConsumePartitions(from))
	defer consumer.Close()
	record := consumer.PollFetches(within()).Records()[0]
	check(string(record.Value) == "42" && record.Timestamp.UnixMilli() == begin+42_000, "%s at %v", record.Value, record.Timestamp)
}
