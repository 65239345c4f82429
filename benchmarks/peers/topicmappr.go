// What topicmappr proposes for a topology file, with its default flags: scale where brokers are
// empty, else rebalance. Built beside its own planner (benchmarks/planner_peers.py), without the
// ZooKeeper that its command line wants. Brokers are taken to be 40 % full on average.
// Prints one JSON object: CPU seconds, and the assignment.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"syscall"

	"github.com/DataDog/kafka-kit/v4/mapper"
)

const (
	indent             = "  "
	div                = 1 << 30
	meanFull           = 0.4
	partitionLimit     = 30
	sizeThresholdMB    = 512
	rebalanceThreshold = 0.20
)

type topology struct {
	Brokers []struct {
		ID   int
		Rack *string
	}
	Partitions []struct {
		Topic     string
		Partition int
		Replicas  []int
		Size      float64
	}
}

type reassignParams struct {
	localityScoped, verbose                bool
	partitionLimit, partitionSizeThreshold int
	storageThreshold, storageThresholdGB   float64
	tolerance                              float64
}

func (s reassignParams) UseFixedTolerance() bool { return false }

func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

func main() {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var given topology
	if err := json.Unmarshal(raw, &given); err != nil {
		panic(err)
	}
	used, total := map[int]float64{}, 0.0
	now, sizes := mapper.NewPartitionMap(), mapper.NewPartitionMetaMap()
	for _, p := range given.Partitions {
		now.Partitions = append(now.Partitions,
			mapper.Partition{Topic: p.Topic, Partition: p.Partition, Replicas: p.Replicas})
		if sizes[p.Topic] == nil {
			sizes[p.Topic] = map[int]*mapper.PartitionMeta{}
		}
		sizes[p.Topic][p.Partition] = &mapper.PartitionMeta{Size: p.Size}
		for _, broker := range p.Replicas {
			used[broker] += p.Size
			total += p.Size
		}
	}
	sort.Sort(now.Partitions)
	capacity := total / float64(len(given.Brokers)) / meanFull
	meta, ids := mapper.BrokerMetaMap{}, []int{}
	for _, b := range given.Brokers {
		rack := ""
		if b.Rack != nil {
			rack = *b.Rack
		}
		meta[b.ID] = &mapper.BrokerMeta{StorageFree: capacity - used[b.ID], Rack: rack}
		ids = append(ids, b.ID)
	}
	started := cpuSeconds()
	brokers := mapper.BrokerMapFromPartitionMap(now, meta, false)
	status, messages := brokers.Update(ids, meta)
	for range messages {
	}
	params := reassignParams{partitionLimit: partitionLimit, partitionSizeThreshold: sizeThresholdMB}
	if status.New == 0 {
		params.storageThreshold = rebalanceThreshold
	}
	var relieved []int
	for _, b := range brokers.Filter(func(b *mapper.Broker) bool { return !b.New }) {
		relieved = append(relieved, b.ID)
	}
	if params.storageThreshold > 0 {
		relieved = nil
		for _, b := range brokers.Filter(mapper.BelowMeanFn(params.storageThreshold, brokers.HMean)) {
			relieved = append(relieved, b.ID)
		}
	}
	sort.Sort(offloadTargetsBySize{t: relieved, bm: brokers})
	best, found := reassignmentBundle{}, false
	for bundle := range computeReassignmentBundles(params, now, sizes, brokers, relieved) {
		if !found || bundle.storageRange < best.storageRange ||
			(bundle.storageRange == best.storageRange && bundle.stdDev < best.stdDev) {
			best, found = bundle, true
		}
	}
	took := cpuSeconds() - started
	partitions := []map[string]any{}
	for _, p := range best.partitionMap.Partitions {
		partitions = append(partitions, map[string]any{
			"topic": p.Topic, "partition": p.Partition, "replicas": p.Replicas})
	}
	answer, err := json.Marshal(map[string]any{"seconds": took, "partitions": partitions})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(answer))
}
