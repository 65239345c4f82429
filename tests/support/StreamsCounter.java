import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TaskId;

/** Counts the values of a topic by their last digit until it is ended: a source topic, a repartition
 * topic and a changelog. Arguments: brokers, group, topic, group protocol, folder for its state, and,
 * if wanted, for how many ms it rests after each batch that it restores. It prints each partition of
 * the changelog and the offset up to which it has restored it. */
public class StreamsCounter {
  private static final int BATCH = 500;

  public static void main(String[] args) {
    long restMs = args.length > 5 ? Long.parseLong(args[5]) : 0;
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
    settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, args[3]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 500);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0); // a changelog record per value
    settings.put(StreamsConfig.restoreConsumerPrefix("max.poll.records"), BATCH);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    StreamsBuilder builder = new StreamsBuilder();
    builder
        .<String, String>stream(args[2])
        .groupBy((key, value) -> value.substring(value.length() - 1))
        .count();
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    Progress progress = new Progress(restMs);
    streams.setGlobalStateRestoreListener(progress);
    streams.setStandbyUpdateListener(progress);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }

  private record Progress(long restMs) implements StateRestoreListener, StandbyUpdateListener {
    private void tell(TopicPartition of, long next) {
      System.out.println("restored " + of.topic() + " " + of.partition() + " " + next);
    }

    private void tellAndRest(TopicPartition of, long next) {
      tell(of, next);
      try {
        Thread.sleep(restMs);
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
      }
    }

    @Override
    public void onRestoreStart(TopicPartition of, String store, long start, long end) {
      tell(of, start);
    }

    @Override
    public void onBatchRestored(TopicPartition of, String store, long last, long records) {
      tellAndRest(of, last + 1);
    }

    @Override
    public void onRestoreEnd(TopicPartition of, String store, long records) {}

    @Override
    public void onUpdateStart(TopicPartition of, String store, long start) {
      tell(of, start);
    }

    @Override
    public void onBatchLoaded(
        TopicPartition of, String store, TaskId task, long last, long records, long end) {
      tellAndRest(of, last + 1);
    }

    @Override
    public void onUpdateSuspended(
        TopicPartition of, String store, long offset, long end, SuspendReason reason) {}
  }
}
