//! An idempotent producer with several batches under way, as real clients have them.
//!
//! Invariant: batches are sent in order, each again with the same bytes until its outcome is known; the next follows its
//! sequence. After each that is known to be there it may be sent once more: the answer must be the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_kafka::batch::{self, BatchHeader, NewRecord};
use hapax_kafka::{Acks, Client, ClientError, Connection, Identity, Ticket, delivery, produce_request};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ProduceRequest;

use super::{FINISH, Pace, Shared, TOPIC, outcome_of, record};
use crate::broker::history::{Answer, Ask, Moment, Name, Outcome, Way};

/// The most that a Kafka broker remembers, and therefore the most that clients have under way.
const WINDOW: usize = 5;
const PAUSE: Duration = Duration::from_millis(30);
const NEWEST: i16 = 12;

struct Batch {
    first: u64,
    count: u32,
    bytes: Bytes,
    invoked: Option<Moment>,
}

struct Pipeline {
    shared: Arc<Shared>,
    process: u32,
    partition: i32,
    client: Client,
    identity: Identity,
    random: fastrand::Rng,
    number: u64,
    sequence: i32,
    window: VecDeque<Batch>,
    /// The connection, and the tickets of the first batches of the window.
    line: Option<(Connection, VecDeque<Ticket>)>,
    /// Batches begin to overlap when the broker knows the producer.
    warm: bool,
    /// Of the topic, when this producer began.
    generation: u32,
}

/// Writes to one partition until the run ends.
pub(super) async fn run(shared: Arc<Shared>, process: u32, partition: i32) {
    let mut client = shared.client(process, Duration::from_secs(3));
    let Some(identity) = identify(&shared, &mut client).await else { return };
    let random = fastrand::Rng::with_seed(shared.seed ^ u64::from(process));
    let generation = shared.generation();
    let mut pipeline = Pipeline {
        shared,
        process,
        partition,
        client,
        identity,
        random,
        number: 0,
        sequence: 0,
        window: VecDeque::new(),
        line: None,
        warm: false,
        generation,
    };
    pipeline.work().await;
}

async fn identify(shared: &Shared, client: &mut Client) -> Option<Identity> {
    while shared.pace() != Pace::Finish {
        if let Ok(identity) = client.init_producer_id(None).await {
            return Some(identity);
        }
        tokio::time::sleep(PAUSE).await;
    }
    None
}

impl Pipeline {
    async fn work(&mut self) {
        let mut finish = None;
        loop {
            let pace = self.shared.pace();
            if pace == Pace::Run {
                self.fill();
            }
            if pace == Pace::Finish {
                let until = *finish.get_or_insert_with(|| Instant::now() + FINISH);
                if self.window.is_empty() || Instant::now() > until {
                    return self.give_up("the run is over");
                }
            }
            if self.window.is_empty() || matches!(pace, Pace::Quiet | Pace::Stubborn) {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            match self.exchange().await {
                Ok(()) => {}
                Err(_) if self.is_of_another_topic() => {
                    tokio::time::sleep(PAUSE).await;
                    self.begin_anew().await;
                }
                Err(error) if error.is_retriable() || error.code() == Some(ResponseError::UnknownTopicOrPartition) => {
                    self.line = None;
                    self.client.forget(TOPIC, self.partition);
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return self.refused(&error),
            }
        }
    }

    /// Whether the topic was made anew since this producer began, or is being made anew.
    fn is_of_another_topic(&self) -> bool {
        let now = self.shared.generation();
        now != self.generation || now % 2 == 1
    }

    /// As another producer: part of what this one sent may be in the old topic, and what followed in the new one.
    async fn begin_anew(&mut self) {
        for batch in std::mem::take(&mut self.window).iter().filter(|batch| batch.invoked.is_some()) {
            self.note(batch, Outcome::Unknown("the topic was made anew".to_owned()));
        }
        self.generation = self.shared.generation();
        self.line = None;
        self.client.forget(TOPIC, self.partition);
        (self.process, self.number, self.sequence, self.warm) = (self.shared.process(), 0, 0, false);
        if let Some(identity) = identify(&self.shared, &mut self.client).await {
            self.identity = identity;
        }
    }

    /// Makes new batches until the window is full.
    fn fill(&mut self) {
        let wanted = if self.warm { self.random.usize(1..=WINDOW) } else { 1 };
        while self.window.len() < wanted {
            let count = self.random.u32(1..=8);
            let size = if self.random.u8(0..20) == 0 { 20_000 } else { self.random.usize(20..300) };
            let records: Vec<NewRecord> = (self.number..self.number + u64::from(count))
                .map(|number| record(Name { process: self.process, number }, size))
                .collect();
            let Identity { producer_id, epoch } = self.identity;
            let header = BatchHeader { producer_id, epoch, first_sequence: self.sequence, attributes: 0 };
            let bytes = batch::encode(header, &records);
            self.window.push_back(Batch { first: self.number, count, bytes, invoked: None });
            self.number += u64::from(count);
            self.sequence = self.sequence.wrapping_add_unsigned(count) & i32::MAX;
        }
    }

    /// Sends what is not sent yet, and reads one answer.
    async fn exchange(&mut self) -> Result<(), ClientError> {
        let (mut connection, mut tickets) = match self.line.take() {
            Some(line) => line,
            None => {
                let address = self.client.leader_address(TOPIC, self.partition).await?;
                (Connection::connect(&address, self.client.options()).await?, VecDeque::new())
            }
        };
        let version = connection.version::<ProduceRequest>(NEWEST)?;
        for batch in self.window.iter_mut().skip(tickets.len()) {
            batch.invoked.get_or_insert_with(|| self.shared.recorder.now());
            let request = request(self.partition, batch);
            tickets.push_back(connection.begin(version, &request).await?);
        }
        let Some(ticket) = tickets.pop_front() else { return Ok(()) };
        let answer = connection.finish::<ProduceRequest>(ticket).await?;
        let found = delivery(&answer, TOPIC, self.partition)?;
        let Some(batch) = self.window.pop_front() else { return Ok(()) };
        self.note(&batch, Outcome::Ok(Answer::Appended(found.base_offset)));
        self.warm = true;
        if tickets.is_empty() && self.random.u8(0..8) == 0 {
            self.once_more(&mut connection, version, batch).await?;
        }
        self.line = Some((connection, tickets));
        Ok(())
    }

    /// A batch that is there already: the same answer, and nothing new in the log.
    async fn once_more(&mut self, connection: &mut Connection, version: i16, known: Batch) -> Result<(), ClientError> {
        let again = Batch { invoked: Some(self.shared.recorder.now()), ..known };
        let answer = connection.call_at(version, &request(self.partition, &again)).await;
        let found = answer.and_then(|answer| delivery(&answer, TOPIC, self.partition));
        let outcome = match &found {
            Ok(found) => Outcome::Ok(Answer::Appended(found.base_offset)),
            Err(error) => outcome_of(error),
        };
        self.note(&again, outcome);
        found.map(drop)
    }

    fn note(&self, batch: &Batch, outcome: Outcome) {
        let ask =
            Ask::Produce { partition: self.partition, first: batch.first, count: batch.count, way: Way::Idempotent };
        let invoked = batch.invoked.unwrap_or_else(|| self.shared.recorder.now());
        self.shared.recorder.note(self.process, invoked, ask, outcome);
    }

    /// The oldest batch was refused for good: no broker may do that to it.
    fn refused(&mut self, error: &ClientError) {
        if let Some(batch) = self.window.pop_front() {
            self.note(&batch, Outcome::Fail(error.to_string()));
        }
        self.give_up("an earlier batch was refused");
    }

    /// What was sent and is not known stays unknown.
    fn give_up(&mut self, why: &str) {
        let left = std::mem::take(&mut self.window);
        let sent: Vec<Batch> = left.into_iter().filter(|batch| batch.invoked.is_some()).collect();
        if !sent.is_empty() {
            let (process, count) = (self.process, sent.len());
            self.shared.give_up(format!("producer {process} never learned what became of {count} batches: {why}"));
        }
        sent.iter().for_each(|batch| self.note(batch, Outcome::Unknown(why.to_owned())));
    }
}

fn request(partition: i32, batch: &Batch) -> ProduceRequest {
    produce_request(TOPIC, partition, batch.bytes.clone(), Acks::All, Duration::from_secs(3))
}
