"""The process of the job: Java, Spark, the metrics topic, and one batch after another."""
