package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct{}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 45 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	return config
}

func saramaCreate(bootstrap, topic string, partitions int32) sarama.ClusterAdmin {
	admin := must(sarama.NewClusterAdmin([]string{bootstrap}, saramaConfig()))
	try(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	return admin
}

// saramaProduce produces the numbered records and counts the different places that were answered.
func saramaProduce(bootstrap, topic string, from, upto int, config *sarama.Config) int {
	producer := must(sarama.NewAsyncProducer([]string{bootstrap}, config))
	go func() {
		for number := from; number < upto; number++ {
			header := sarama.RecordHeader{Key: []byte("n"), Value: []byte(fmt.Sprintf("h%d", number))}
			producer.Input() <- &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint(number)),
				Value: sarama.ByteEncoder(payload(number)), Headers: []sarama.RecordHeader{header}}
		}
	}()
	// Not before all is answered: what is being retried would be refused.
	defer producer.AsyncClose()
	places := map[string]bool{}
	for answered := 0; answered < upto-from; answered++ {
		select {
		case message := <-producer.Successes():
			places[fmt.Sprintf("%d:%d", message.Partition, message.Offset)] = true
		case failed := <-producer.Errors():
			panic(failed)
		}
	}
	return len(places)
}

func saramaVerify(bootstrap, topic string, partitions int32) {
	connection := must(sarama.NewClient([]string{bootstrap}, saramaConfig()))
	defer connection.Close()
	consumer := must(sarama.NewConsumerFromClient(connection))
	total, read := int64(0), newReading()
	for partition := int32(0); partition < partitions; partition++ {
		end := must(connection.GetOffset(topic, partition, sarama.OffsetNewest))
		total += end
		messages := must(consumer.ConsumePartition(topic, partition, sarama.OffsetOldest))
		for next := int64(0); next < end; next++ {
			select {
			case m := <-messages.Messages():
				read.see(m.Partition, m.Offset, m.Key, m.Value, m.Headers[0].Value)
			case <-time.After(deadline):
				panic("timed out while reading")
			}
		}
		try(messages.Close())
	}
	check(total == records && len(read.numbers) == records, "the log holds %d records", total)
}

func (saramaClient) compression(bootstrap, topic, codec string) {
	try(saramaCreate(bootstrap, topic, 2).Close())
	config := saramaConfig()
	config.Producer.Flush.Frequency = 2 * time.Millisecond
	config.Net.MaxOpenRequests = 1 // Without sequences a request that is retried is overtaken by those behind it.
	try(config.Producer.Compression.UnmarshalText([]byte(codec)))
	saramaProduce(bootstrap, topic, 0, records, config)
	saramaVerify(bootstrap, topic, 2)
}

func (saramaClient) idempotent(bootstrap, topic string) {
	try(saramaCreate(bootstrap, topic, 2).Close())
	config := saramaConfig()
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Flush.MaxMessages = 20
	config.Producer.Retry.Max = 50
	config.Producer.Retry.Backoff = 50 * time.Millisecond
	places := saramaProduce(bootstrap, topic, 0, records, config)
	check(places == records, "%d different offsets were answered", places)
	saramaVerify(bootstrap, topic, 2)
}

// saramaMember processes until stopped: a record is done when its offset is committed.
type saramaMember struct {
	done     *processed
	assigned atomic.Int32
	stop     context.CancelFunc
	ended    chan any
}

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	count := 0
	for _, partitions := range session.Claims() {
		count += len(partitions)
	}
	m.assigned.Store(int32(count))
	return nil
}

func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	pending := []*sarama.ConsumerMessage{}
	for message := range claim.Messages() {
		if session.Context().Err() != nil {
			return nil
		}
		session.MarkMessage(message, "")
		pending = append(pending, message)
		if len(pending) < 50 && len(claim.Messages()) > 0 {
			continue
		}
		session.Commit()
		for _, message := range pending {
			m.done.add(message.Partition, message.Offset)
		}
		pending = pending[:0]
	}
	return nil
}

func newSaramaMember(bootstrap, topic string, done *processed) *saramaMember {
	running, stop := context.WithCancel(context.Background())
	member := &saramaMember{done: done, stop: stop, ended: make(chan any, 1)}
	group := must(sarama.NewConsumerGroup([]string{bootstrap}, topic, saramaConfig()))
	go func() {
		defer func() { member.ended <- recover() }()
		for running.Err() == nil {
			if err := group.Consume(running, []string{topic}, member); !errors.Is(err, sarama.ErrClosedConsumerGroup) {
				try(err)
			}
		}
		try(group.Close())
	}()
	return member
}

func (m *saramaMember) leave() {
	m.stop()
	problem := <-m.ended
	check(problem == nil, "a member failed: %v", problem)
}

func (saramaClient) group(bootstrap, topic string) string {
	admin := saramaCreate(bootstrap, topic, 4)
	defer admin.Close()
	third, done := 300, newProcessed()
	first := newSaramaMember(bootstrap, topic, done)
	saramaProduce(bootstrap, topic, 0, third, saramaConfig())
	until("the first member reads", func() bool { return done.count() >= third })
	second := newSaramaMember(bootstrap, topic, done)
	saramaProduce(bootstrap, topic, third, 2*third, saramaConfig())
	until("two members share", func() bool { return first.assigned.Load() == 2 && second.assigned.Load() == 2 })
	until("two members read", func() bool { return done.count() >= 2*third })
	last := newSaramaMember(bootstrap, topic, done)
	first.leave()
	saramaProduce(bootstrap, topic, 2*third, 3*third, saramaConfig())
	until("the others take over", func() bool { return done.count() >= 3*third })
	second.leave()
	last.leave()
	offsets := must(admin.ListConsumerGroupOffsets(topic, map[string][]int32{topic: {0, 1, 2, 3}}))
	committed := int64(0)
	for _, block := range offsets.Blocks[topic] {
		committed += block.Offset
	}
	try(admin.DeleteConsumerGroup(topic))
	// Its commit tells no error: a refused one is found by the sum, and what follows it may be read twice.
	check(len(done.seen) == 3*third && committed == int64(3*third), "%d records, committed %d", len(done.seen), committed)
	return fmt.Sprintf("%d records, none lost, all committed, 3 members", 3*third)
}

func (saramaClient) admin(bootstrap, topic string) {
	admin := saramaCreate(bootstrap, topic, 2)
	defer admin.Close()
	count := func() int32 { return must(admin.ListTopics())[topic].NumPartitions }
	until("the topic is listed", func() bool { return count() == 2 })
	try(admin.CreatePartitions(topic, 3, nil, false))
	until("three partitions", func() bool { return count() == 3 })
	value := "1234567"
	entry := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
	changes := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": entry}
	try(admin.IncrementalAlterConfig(sarama.TopicResource, topic, changes, false))
	config := func(name string) string {
		asked := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{name}}
		return must(admin.DescribeConfig(asked))[0].Value
	}
	until("the changed configuration", func() bool { return config("retention.ms") == value })
	check(config("cleanup.policy") == "delete", "cleanup.policy is %s", config("cleanup.policy"))
	_, controller, err := admin.DescribeCluster()
	check(err == nil && controller >= 0, "no controller: %v", err)
	err = admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false)
	check(errors.Is(err, sarama.ErrTopicAlreadyExists), "the topic was created twice: %v", err)
	try(admin.DeleteTopic(topic))
	until("the topic is gone", func() bool { _, there := must(admin.ListTopics())[topic]; return !there })
}

func (saramaClient) seekByTime(bootstrap, topic string) {
	try(saramaCreate(bootstrap, topic, 1).Close())
	config := saramaConfig()
	producer := must(sarama.NewSyncProducer([]string{bootstrap}, config))
	var sent []*sarama.ProducerMessage
	for number := 0; number < 100; number++ {
		at := time.UnixMilli(begin + int64(number)*1000)
		sent = append(sent, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint(number)), Timestamp: at})
	}
	try(producer.SendMessages(sent))
	connection := must(sarama.NewClient([]string{bootstrap}, config))
	defer connection.Close()
	for asked, expected := range map[int64]int64{0: 0, 41_500: 42, 42_000: 42, -5: 0, 1_000_000: -1} {
		found := must(connection.GetOffset(topic, 0, begin+asked))
		check(found == expected, "%d: %d, not %d", asked, found, expected)
	}
	consumer := must(sarama.NewConsumerFromClient(connection))
	messages := must(consumer.ConsumePartition(topic, 0, 42))
	message := <-messages.Messages()
	check(string(message.Value) == "42" && message.Timestamp.UnixMilli() == begin+42_000, "%s at %v", message.Value, message.Timestamp)
}
