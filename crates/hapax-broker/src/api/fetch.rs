//! Fetch 4–18: whole batches, as they lie in the log.
//!
//! Registers with every partition before it reads, so that nothing appended meanwhile is missed. Answers when there is
//! enough, when time is up, or at once when any partition has an error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest};
use kafka_protocol::messages::fetch_response::{
    EpochEndOffset, FetchResponse, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;
use uuid::Uuid;

use crate::answers::Share;
use crate::api::offset_for_leader_epoch::end_of;
use crate::api::place::{Hints, check_epoch, led, numbered, read_code, topic_named, topic_of};
use crate::api::{Call, Close};
use crate::batch::{Batches, FirstBatch};
use crate::broker::Broker;
use crate::log::{Partition, Waiter};
use crate::metrics::Metrics;
use crate::model::PartitionId;
use crate::store::Store;

/// As much as one answer may have, whatever the client asks for.
const MAX_BYTES: usize = 55 << 20;
/// As long as a client that does not want to wait waits for memory that others hold.
const GRACE: Duration = Duration::from_secs(1);
/// As long as anybody may wait.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// From this version on the answer says who leads what we do not.
const FIRST_WITH_LEADERS: i16 = 16;

/// What is wanted of one topic.
struct Wanted {
    name: TopicName,
    uuid: Uuid,
    partitions: Vec<WantedPartition>,
}

struct WantedPartition {
    asked: FetchPartition,
    id: Option<PartitionId>,
    found: Result<Arc<Partition>, ResponseError>,
}

/// What was read in one round.
struct Round {
    response: FetchResponse,
    bytes: usize,
    /// There is something that must be known at once: an error, or records that are not in our log.
    failed: bool,
}

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: FetchRequest,
) -> Result<(FetchResponse, Option<Share>), Close> {
    // We keep no sessions: every request is whole, or names one that cannot be.
    if call.version >= 7 && !matches!(request.session_epoch, 0 | -1) {
        let code = ResponseError::FetchSessionIdNotFound.code();
        return Ok((FetchResponse::default().with_error_code(code), None));
    }
    let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(MAX_BYTES);
    let min_bytes = usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes);
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)).min(MAX_WAIT);
    let deadline = Instant::now() + wait;
    let isolation = if request.isolation_level == 1 { Isolation::Committed } else { Isolation::Uncommitted };
    let wanted = find(broker, call.version, request).await;
    let all = || wanted.iter().flat_map(|topic| &topic.partitions);
    let most = all().map(|partition| usize::try_from(partition.asked.partition_max_bytes).unwrap_or(0));
    let most = most.fold(0_usize, usize::saturating_add).min(max_bytes);
    let waiter = Waiter::new(all().filter_map(|partition| partition.found.as_ref().ok()));
    loop {
        // While there is nothing to send no memory is kept; without any, what a client may know is sent without records.
        let patience = deadline.max(Instant::now() + GRACE);
        let share = tokio::time::timeout_at(patience, broker.answers.share(most)).await.ok();
        let room = share.as_ref().map_or(0, Share::bytes);
        let mut round = read(broker, &wanted, max_bytes.min(room), isolation).await;
        let is_cut = room < most && round.bytes > 0;
        let is_over = round.failed || round.bytes >= min_bytes || is_cut || wanted.is_empty();
        if is_over || Instant::now() >= deadline {
            if round.failed && call.version >= FIRST_WITH_LEADERS {
                hint(broker, &wanted, &mut round.response).await;
            }
            count(&broker.config.metrics, &round);
            return Ok((round.response, share.and_then(|share| share.down_to(round.bytes))));
        }
        drop((share, round));
        // Time may be up in the middle of it: then what is there is read once more and sent.
        drop(tokio::time::timeout_at(deadline, waiter.changed()).await);
    }
}

fn count(metrics: &Metrics, round: &Round) {
    let partitions = round.response.responses.iter().flat_map(|topic| &topic.partitions);
    let batches = partitions.filter_map(|partition| partition.records.as_ref()).flat_map(|row| Batches::new(row));
    let records = batches.filter_map(Result::ok).map(|(_, header)| u64::try_from(header.count).unwrap_or(0));
    metrics.fetched_records.add(records.sum());
    metrics.fetched_bytes.add(round.bytes as u64);
}

/// Whether a reader wants what is not decided yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    Uncommitted,
    Committed,
}

async fn find<S: Store>(broker: &Broker<S>, version: i16, request: FetchRequest) -> Vec<Wanted> {
    let mut wanted = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = match version {
            13.. => topic_of(broker, topic.topic_id).await,
            _ => topic_named(broker, &topic.topic).await,
        };
        let partitions = topic.partitions.into_iter().map(|asked| {
            let id = found.as_ref().map_err(|code| *code).and_then(|topic| numbered(topic, asked.partition));
            let found = id.and_then(|id| led(broker, id));
            WantedPartition { asked, id: id.ok(), found }
        });
        let partitions = partitions.collect();
        wanted.push(Wanted { name: topic.topic, uuid: topic.topic_id, partitions });
    }
    wanted
}

async fn read<S: Store>(broker: &Broker<S>, wanted: &[Wanted], max_bytes: usize, isolation: Isolation) -> Round {
    let mut round = Round { response: FetchResponse::default(), bytes: 0, failed: false };
    for topic in wanted {
        let mut answers = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let left = max_bytes.saturating_sub(round.bytes);
            // Where there is no memory at all, not even the first batch comes.
            let is_first = round.bytes == 0 && max_bytes > 0;
            let first = if is_first { FirstBatch::Always } else { FirstBatch::IfItFits };
            let answer = match &partition.found {
                Ok(found) => read_partition(broker, found, &partition.asked, left, first, isolation).await,
                Err(code) => refuse(&partition.asked, *code),
            };
            round.failed |= answer.error_code != 0 || answer.diverging_epoch != EpochEndOffset::default();
            round.bytes += answer.records.as_ref().map_or(0, Bytes::len);
            answers.push(answer);
        }
        let answer = FetchableTopicResponse::default().with_topic(topic.name.clone()).with_topic_id(topic.uuid);
        round.response.responses.push(answer.with_partitions(answers));
    }
    round
}

async fn read_partition<S: Store>(
    broker: &Broker<S>,
    partition: &Partition,
    asked: &FetchPartition,
    left: usize,
    first: FirstBatch,
    isolation: Isolation,
) -> PartitionData {
    if !partition.is_led() || !broker.lead.fresh() {
        return refuse(asked, ResponseError::NotLeaderOrFollower);
    }
    // As in Kafka, here and only here every negative epoch means none.
    if let Err(code) = check_epoch(partition, asked.current_leader_epoch.max(-1)) {
        return refuse(asked, code);
    }
    let diverging = match diverging(broker, partition, asked).await {
        Ok(diverging) => diverging,
        Err(code) => return refuse(asked, code),
    };
    let (log_start, end, stable) = (partition.log_start(), partition.end(), partition.last_stable());
    let answer = PartitionData::default()
        .with_partition_index(asked.partition)
        .with_high_watermark(end)
        .with_last_stable_offset(stable)
        .with_log_start_offset(log_start)
        .with_aborted_transactions((isolation == Isolation::Committed).then(Vec::new));
    if asked.fetch_offset < log_start || asked.fetch_offset > end && diverging.is_none() {
        return refuse(asked, ResponseError::OffsetOutOfRange);
    }
    if let Some(diverging) = diverging {
        return answer.with_diverging_epoch(diverging);
    }
    let below = if isolation == Isolation::Committed { stable } else { end };
    if asked.fetch_offset >= below {
        return answer;
    }
    let max_bytes = usize::try_from(asked.partition_max_bytes).unwrap_or(0).min(left);
    match broker.logs.read(partition, asked.fetch_offset, below, max_bytes, first).await {
        Ok(records) => answer.with_records(Some(records)),
        Err(error) => refuse(asked, read_code(&error)),
    }
}

/// Where the log parts from what a reader has, if it says in which epoch its last record was written and that does not go on
/// to its offset here.
async fn diverging<S: Store>(
    broker: &Broker<S>,
    partition: &Partition,
    asked: &FetchPartition,
) -> Result<Option<EpochEndOffset>, ResponseError> {
    if asked.last_fetched_epoch < 0 {
        return Ok(None);
    }
    let epochs = broker.logs.epochs(partition).await.map_err(|error| read_code(&error))?;
    let (epoch, end) = end_of(epochs, asked.last_fetched_epoch, partition.end());
    if epoch < 0 || end < 0 {
        return Err(ResponseError::OffsetOutOfRange);
    }
    let parts = epoch < asked.last_fetched_epoch || end < asked.fetch_offset;
    Ok(parts.then(|| EpochEndOffset::default().with_epoch(epoch).with_end_offset(end)))
}

fn refuse(asked: &FetchPartition, code: ResponseError) -> PartitionData {
    // Kafka has an empty list here for what it does not know, and none for what it could not read.
    let is_unknown = matches!(code, ResponseError::UnknownTopicOrPartition | ResponseError::UnknownTopicId);
    PartitionData::default()
        .with_partition_index(asked.partition)
        .with_error_code(code.code())
        .with_high_watermark(-1)
        .with_aborted_transactions(is_unknown.then(Vec::new))
}

/// Says who leads what we do not.
async fn hint<S: Store>(broker: &Broker<S>, wanted: &[Wanted], response: &mut FetchResponse) {
    let mut hints = Hints::default();
    let lost = [ResponseError::NotLeaderOrFollower.code(), ResponseError::FencedLeaderEpoch.code()];
    let answers = response.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
    for (answer, wanted) in answers.zip(wanted.iter().flat_map(|topic| &topic.partitions)) {
        let Some(id) = wanted.id.filter(|_| lost.contains(&answer.error_code)) else { continue };
        let Some((leader, epoch)) = hints.leader(broker, id).await else { continue };
        let leader_id = BrokerId(leader.id.0);
        answer.current_leader = LeaderIdAndEpoch::default().with_leader_id(leader_id).with_leader_epoch(epoch);
        if !response.node_endpoints.iter().any(|node| node.node_id == leader_id) {
            let node = NodeEndpoint::default().with_node_id(leader_id).with_host(StrBytes::from_string(leader.host));
            response.node_endpoints.push(node.with_port(i32::from(leader.port)));
        }
    }
}
