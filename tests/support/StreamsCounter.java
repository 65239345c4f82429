import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/** Counts the values of a topic by their last digit until it is ended: a source topic, a repartition
 * topic and a changelog. Arguments: brokers, group, topic, group protocol, folder for its state. */
public class StreamsCounter {
  public static void main(String[] args) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
    settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, args[3]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 500);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    StreamsBuilder builder = new StreamsBuilder();
    builder
        .<String, String>stream(args[2])
        .groupBy((key, value) -> value.substring(value.length() - 1))
        .count();
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }
}
