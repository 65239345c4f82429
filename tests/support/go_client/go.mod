module partiscope/tests/go_client

go 1.21

require (
	github.com/confluentinc/confluent-kafka-go/v2 v2.11.1
	github.com/google/uuid v1.6.0
)
