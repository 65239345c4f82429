"""The APIs of the operator core and the versions that it speaks.

Upper bounds are what Kafka 4.3 serves, except where a later version changes meaning: Metadata and
Fetch stay on topic names, ListOffsets before 9 would ask for tiered offsets.
"""

from typing import Final

from control.kafka.connection.wire import Api

FETCH: Final = Api(key=1, name="read records", versions=(4, 12))
LIST_OFFSETS: Final = Api(key=2, name="list offsets", versions=(1, 8))
METADATA: Final = Api(key=3, name="describe topics", versions=(1, 12))
OFFSET_COMMIT: Final = Api(key=8, name="commit offsets", versions=(2, 9))
OFFSET_FETCH: Final = Api(key=9, name="read committed offsets", versions=(2, 9))
OFFSET_FETCH_MANY: Final = Api(key=9, name="read several groups' offsets", versions=(8, 9))
FIND_COORDINATOR: Final = Api(key=10, name="find a group's coordinator", versions=(0, 6))
DESCRIBE_GROUPS: Final = Api(key=15, name="describe groups", versions=(0, 6))
LIST_GROUPS: Final = Api(key=16, name="list groups", versions=(0, 5))
CREATE_TOPICS: Final = Api(key=19, name="create topics", versions=(2, 7))
DELETE_TOPICS: Final = Api(key=20, name="delete topics", versions=(1, 6))
DELETE_RECORDS: Final = Api(key=21, name="delete records", versions=(0, 2))
CREATE_ACLS: Final = Api(key=30, name="add access control entries", versions=(1, 3))
DESCRIBE_CONFIGS: Final = Api(key=32, name="describe configs", versions=(1, 4))
DESCRIBE_LOG_DIRS: Final = Api(key=35, name="describe log directories", versions=(1, 5))
CREATE_PARTITIONS: Final = Api(key=37, name="add partitions", versions=(0, 3))
DELETE_GROUPS: Final = Api(key=42, name="delete groups", versions=(0, 2))
ELECT_LEADERS: Final = Api(key=43, name="elect leaders", versions=(0, 2))
ALTER_CONFIGS: Final = Api(key=44, name="change configs", versions=(0, 1))
ALTER_REASSIGNMENTS: Final = Api(key=45, name="reassign partitions", versions=(0, 1))
LIST_REASSIGNMENTS: Final = Api(key=46, name="list reassignments", versions=(0, 0))
OFFSET_DELETE: Final = Api(key=47, name="delete committed offsets", versions=(0, 0))
DESCRIBE_QUORUM: Final = Api(key=55, name="describe the metadata quorum", versions=(0, 2))
DESCRIBE_CLUSTER: Final = Api(key=60, name="describe the cluster", versions=(0, 2))
DESCRIBE_PRODUCERS: Final = Api(key=61, name="describe producers", versions=(0, 0))
UNREGISTER_BROKER: Final = Api(key=64, name="unregister a broker", versions=(0, 0))
DESCRIBE_TRANSACTIONS: Final = Api(key=65, name="describe transactions", versions=(0, 0))
LIST_TRANSACTIONS: Final = Api(key=66, name="list transactions", versions=(0, 2))
CONSUMER_GROUP_DESCRIBE: Final = Api(key=69, name="describe consumer groups", versions=(0, 1))
SHARE_GROUP_DESCRIBE: Final = Api(key=77, name="describe share groups", versions=(1, 1))
STREAMS_GROUP_DESCRIBE: Final = Api(key=89, name="describe streams groups", versions=(0, 0))
DESCRIBE_SHARE_GROUP_OFFSETS: Final = Api(
    key=90, name="read a share group's offsets", versions=(0, 1)
)
ALTER_SHARE_GROUP_OFFSETS: Final = Api(key=91, name="set a share group's offsets", versions=(0, 0))
DELETE_SHARE_GROUP_OFFSETS: Final = Api(
    key=92, name="delete a share group's offsets", versions=(0, 0)
)
