// A message log as a Go service would keep it, on confluent-kafka-go: used by the seed scenarios.
//
//	go_client produce BOOTSTRAP TOPIC PARTITION COUNT   PARTITION is a number or "any"; keys are UUIDs
//	go_client consume BOOTSTRAP TOPIC PARTITION COUNT   a number: assigned to exactly that partition;
//	                                                    "any": subscribed in a group
//
// Every line printed is "partition offset key value".
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/google/uuid"
)

func main() {
	if len(os.Args) != 6 {
		fail(fmt.Errorf("usage: go_client produce|consume BOOTSTRAP TOPIC PARTITION|any COUNT"))
	}
	count, err := strconv.Atoi(os.Args[5])
	fail(err)
	partition := kafka.PartitionAny
	if os.Args[4] != "any" {
		number, err := strconv.Atoi(os.Args[4])
		fail(err)
		partition = int32(number)
	}
	switch os.Args[1] {
	case "produce":
		produce(os.Args[2], os.Args[3], partition, count)
	case "consume":
		consume(os.Args[2], os.Args[3], partition, count)
	}
}

func produce(bootstrap, topic string, partition int32, count int) {
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "acks": "all"})
	fail(err)
	defer producer.Close()
	for n := 0; n < count; n++ {
		delivered := make(chan kafka.Event, 1)
		fail(producer.Produce(&kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: partition},
			Key:            []byte(uuid.NewString()),
			Value:          []byte(fmt.Sprintf("message %d", n)),
		}, delivered))
		message := (<-delivered).(*kafka.Message)
		fail(message.TopicPartition.Error)
		show(message)
	}
}

func consume(bootstrap, topic string, partition int32, count int) {
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers":  bootstrap,
		"group.id":           "go-" + topic,
		"auto.offset.reset":  "earliest",
		"enable.auto.commit": false,
	})
	fail(err)
	defer consumer.Close()
	if partition == kafka.PartitionAny {
		fail(consumer.SubscribeTopics([]string{topic}, nil))
	} else {
		fail(consumer.Assign([]kafka.TopicPartition{
			{Topic: &topic, Partition: partition, Offset: kafka.OffsetBeginning},
		}))
	}
	for n := 0; n < count; n++ {
		message, err := consumer.ReadMessage(30 * time.Second)
		fail(err)
		show(message)
	}
	if partition == kafka.PartitionAny {
		_, err = consumer.Commit()
		fail(err)
	}
}

func show(message *kafka.Message) {
	at := message.TopicPartition
	fmt.Println(at.Partition, int64(at.Offset), string(message.Key), string(message.Value))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go_client:", err)
		os.Exit(1)
	}
}
