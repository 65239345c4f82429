import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/**
 * What `kafka-reassign-partitions --generate` proposes for a topology file: its own planning
 * method, called without a cluster. Prints one JSON object: CPU seconds, and the assignment.
 */
public class KafkaGenerate {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        JsonNode topology = json.readTree(new File(args[0]));
        Set<Integer> removed = new HashSet<>();
        topology.path("remove_brokers").forEach(id -> removed.add(id.asInt()));
        List<UsableBroker> brokers = new ArrayList<>();
        for (JsonNode broker : topology.get("brokers")) {
            if (!removed.contains(broker.get("id").asInt())) {
                Optional<String> rack = Optional.ofNullable(broker.path("rack").textValue());
                brokers.add(new UsableBroker(broker.get("id").asInt(), rack, false));
            }
        }
        Map<TopicPartition, List<Integer>> now = new HashMap<>();
        for (JsonNode partition : topology.get("partitions")) {
            List<Integer> replicas = new ArrayList<>();
            partition.get("replicas").forEach(id -> replicas.add(id.asInt()));
            String topic = partition.get("topic").asText();
            now.put(new TopicPartition(topic, partition.get("partition").asInt()), replicas);
        }
        Method calculate = ReassignPartitionsCommand.class.getDeclaredMethod(
            "calculateAssignment", Map.class, List.class);
        calculate.setAccessible(true);
        long started = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        Map<?, ?> proposed = (Map<?, ?>) calculate.invoke(null, now, brokers);
        long took = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - started;
        List<Object> partitions = new ArrayList<>();
        proposed.forEach((key, replicas) -> partitions.add(Map.of(
            "topic", ((TopicPartition) key).topic(),
            "partition", ((TopicPartition) key).partition(),
            "replicas", replicas)));
        System.out.println(json.writeValueAsString(
            Map.of("seconds", took / 1e9, "partitions", partitions)));
    }
}
