//! Produce 3–13: batches are checked here, judged and written by the appender.
//!
//! What is refused for one partition does not touch the others. Waits only for room in the appender's queue, and for room to
//! look into what is compressed.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::Future;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::api::admit::{Refused, admit, weight};
use crate::api::place::{Hints, led, numbered, topic_named, topic_of};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::log::{NewBatch, Partition, Pending, Room, Written, now};
use crate::model::{PartitionId, Topic};
use crate::store::Store;

/// What is to be answered for one topic.
struct Asked {
    name: TopicName,
    uuid: Uuid,
    slots: Vec<Slot>,
}

/// What is to be answered for one partition.
struct Slot {
    index: i32,
    id: Option<PartitionId>,
    state: State,
}

enum State {
    Refused(Refused),
    Waiting(Pending),
}

/// Checks the batches and puts them into the appender's queue; the future waits for them to be durable.
pub(crate) async fn begin<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: ProduceRequest,
) -> Result<impl Future<Output = Result<Option<ProduceResponse>, Close>> + Send + 'static, Close> {
    let (acks, version) = (request.acks, call.version);
    let bytes = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    let bytes = bytes.map(|data| data.records.as_ref().map_or(0, Bytes::len)).sum();
    let room = broker.logs.room(bytes).await;
    let mut asked = Vec::with_capacity(request.topic_data.len());
    for topic in request.topic_data {
        asked.push(begin_topic(broker, version, acks, topic, &room).await);
    }
    let broker = Arc::clone(broker);
    Ok(async move {
        let response = answer(&broker, asked).await;
        if acks == 0 { silence(&response).map(|()| None) } else { Ok(Some(response)) }
    })
}

async fn begin_topic<S: Store>(
    broker: &Arc<Broker<S>>,
    version: i16,
    acks: i16,
    data: TopicProduceData,
    room: &Room,
) -> Asked {
    let found = match version {
        13.. => topic_of(broker, data.topic_id).await,
        _ => topic_named(broker, &data.name).await,
    };
    let found = if matches!(acks, -1..=1) { found } else { Err(ResponseError::InvalidRequiredAcks) };
    let mut slots = Vec::with_capacity(data.partition_data.len());
    for data in data.partition_data {
        slots.push(match &found {
            Ok(topic) => begin_partition(broker, topic, version, data, room).await,
            Err(code) => Slot { index: data.index, id: None, state: State::Refused((*code).into()) },
        });
    }
    Asked { slots, name: data.name, uuid: data.topic_id }
}

async fn begin_partition<S: Store>(
    broker: &Arc<Broker<S>>,
    topic: &Arc<Topic>,
    version: i16,
    data: PartitionProduceData,
    room: &Room,
) -> Slot {
    let refused = |id, refused: Refused| Slot { index: data.index, id, state: State::Refused(refused) };
    let partition = match numbered(topic, data.index) {
        Ok(id) => led(broker, id).map_err(|code| (Some(id), code)),
        Err(code) => Err((None, code)),
    };
    let partition = match partition {
        Ok(partition) => partition,
        Err((id, code)) => return refused(id, code.into()),
    };
    let id = Some(partition.id);
    match look(broker, topic, partition, data.records, version).await {
        Ok(batch) => Slot { index: data.index, id, state: State::Waiting(broker.logs.append(batch, room)) },
        Err(error) => refused(id, error),
    }
}

/// Looks at a batch: at once, or where that takes memory and time, when there is room for it, on a thread for such things.
async fn look<S: Store>(
    broker: &Arc<Broker<S>>,
    topic: &Arc<Topic>,
    partition: Arc<Partition>,
    records: Option<Bytes>,
    version: i16,
) -> Result<NewBatch, Refused> {
    let settings = broker.logs.settings(topic);
    let weight = records.as_deref().map_or(0, |records| weight(&settings, records));
    if weight == 0 {
        return admit(&settings, partition, records, version, now());
    }
    let held = broker.logs.hold(weight).await;
    let looking = tokio::task::spawn_blocking(move || {
        let sent = records.as_deref().map(<[u8]>::as_ptr);
        let mut batch = admit(&settings, partition, records, version, now())?;
        // What was made anew takes memory until it is in a row; what came is counted with its request.
        let made = if sent == Some(batch.bytes.as_ptr()) { 0 } else { batch.bytes.len() };
        batch.held = held.down_to(made);
        Ok(batch)
    });
    looking.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a batch could not be looked at");
        Err(ResponseError::UnknownServerError.into())
    })
}

/// Waits for all of it, in order: they are durable together, or nearly so.
async fn answer<S: Store>(broker: &Broker<S>, asked: Vec<Asked>) -> ProduceResponse {
    let mut hints = Hints::default();
    let mut response = ProduceResponse::default();
    for topic in asked {
        let mut answers = Vec::with_capacity(topic.slots.len());
        for slot in topic.slots {
            let outcome = match slot.state {
                State::Refused(refused) => Err(refused),
                State::Waiting(pending) => pending.outcome().await.map_err(Refused::from),
            };
            let mut answer = partition_answer(slot.index, &outcome);
            if answer.error_code == ResponseError::NotLeaderOrFollower.code()
                && let Some(id) = slot.id
                && let Some((leader, epoch)) = hints.leader(broker, id).await
            {
                let leader_id = BrokerId(leader.id.0);
                answer.current_leader = LeaderIdAndEpoch::default().with_leader_id(leader_id).with_leader_epoch(epoch);
                if !response.node_endpoints.iter().any(|node| node.node_id == leader_id) {
                    let host = StrBytes::from_string(leader.host);
                    let node = NodeEndpoint::default().with_node_id(leader_id).with_host(host);
                    response.node_endpoints.push(node.with_port(i32::from(leader.port)));
                }
            }
            answers.push(answer);
        }
        let answer = TopicProduceResponse::default().with_name(topic.name).with_topic_id(topic.uuid);
        response.responses.push(answer.with_partition_responses(answers));
    }
    response
}

fn partition_answer(index: i32, outcome: &Result<Written, Refused>) -> PartitionProduceResponse {
    let answer = PartitionProduceResponse::default().with_index(index);
    match outcome {
        Ok(written) => answer
            .with_base_offset(written.base_offset)
            .with_log_append_time_ms(written.append_time)
            .with_log_start_offset(written.log_start),
        Err(refused) => {
            let message = refused.message.clone().map(StrBytes::from_string);
            answer.with_base_offset(-1).with_error_code(refused.code.code()).with_error_message(message)
        }
    }
}

/// One who asked for no answer learns of a failure by the end of its connection.
fn silence(response: &ProduceResponse) -> Result<(), Close> {
    let mut all = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    match all.find(|answer| answer.error_code != 0) {
        None => Ok(()),
        Some(answer) => {
            let (index, code) = (answer.index, answer.error_code);
            Err(Close(format!("a batch for partition {index} sent with acks=0 was refused with {code}")))
        }
    }
}
