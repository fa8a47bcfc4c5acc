//! DescribeLogDirs: one pretend directory, the store, with the size of every partition.

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::failure::store_code;
use crate::api::leaders::topic_name;
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::model::{PartitionId, Topic};
use crate::store::Store;

/// What the pretend directory is called.
const DIRECTORY: &str = "/hapax";
/// "Not known": the store is not a directory of this broker.
const UNKNOWN: i64 = -1;

/// Tells sizes of all partitions or some.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: DescribeLogDirsRequest,
) -> Result<DescribeLogDirsResponse, Close> {
    let mut wanted: Vec<(Arc<Topic>, Vec<i32>)> = Vec::new();
    match request.topics {
        None => {
            for topic in broker.catalog.all() {
                let all = (0..).take(topic.partitions.len()).collect();
                wanted.push((topic, all));
            }
        }
        Some(asked) => {
            for one in asked {
                if let Ok(Some(topic)) = broker.catalog.topic(&one.topic).await {
                    wanted.push((topic, one.partitions));
                }
            }
        }
    }
    let ids: Vec<PartitionId> = wanted
        .iter()
        .flat_map(|(topic, indexes)| indexes.iter().filter_map(|index| partition(topic, *index)))
        .collect();
    let directory = DescribeLogDirsResult::default()
        .with_log_dir(StrBytes::from_static_str(DIRECTORY))
        .with_total_bytes(UNKNOWN)
        .with_usable_bytes(UNKNOWN);
    let directory = match broker.store.sizes(&ids).await {
        Ok(sizes) => {
            let sizes: HashMap<PartitionId, u64> = sizes.into_iter().collect();
            let topics = wanted.iter().map(|(topic, indexes)| describe(topic, indexes, &sizes));
            directory.with_topics(topics.filter(|topic| !topic.partitions.is_empty()).collect())
        }
        Err(error) => directory.with_error_code(store_code(&error).code()),
    };
    Ok(DescribeLogDirsResponse::default().with_results(vec![directory]))
}

fn partition(topic: &Topic, index: i32) -> Option<PartitionId> {
    topic.partitions.get(usize::try_from(index).ok()?).copied()
}

fn describe(topic: &Topic, indexes: &[i32], sizes: &HashMap<PartitionId, u64>) -> DescribeLogDirsTopic {
    let partitions = indexes.iter().filter_map(|index| {
        let size = sizes.get(&partition(topic, *index)?).copied().unwrap_or(0);
        let shown = DescribeLogDirsPartition::default().with_partition_index(*index);
        Some(shown.with_partition_size(i64::try_from(size).unwrap_or(i64::MAX)))
    });
    DescribeLogDirsTopic::default().with_name(topic_name(&topic.name)).with_partitions(partitions.collect())
}
