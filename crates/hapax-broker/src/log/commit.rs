//! One commit: batches judged, given offsets and put into rows; afterwards made visible, or thrown away.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;
use kafka_protocol::error::ResponseError;

use crate::batch::{set_append_time, set_max_timestamp, stamp};
use crate::log::append::{Outcome, Reply, Time, Work};
use crate::log::cache::TailCache;
use crate::log::partition::State;
use crate::log::{AppendError, NewBatch, Partition, Written};
use crate::metrics::Metrics;
use crate::model::{Offset, PartitionId, Timestamp};
use crate::rules::producer::Draft;
use crate::rules::sequence::{Claim, Verdict};
use crate::store::{Append, ProducerSnapshot, Row};

/// Bytes of a row, unless one batch is larger.
const ROW: usize = 1 << 20;

/// What goes into one commit.
pub(super) struct Commit {
    parts: Vec<Part>,
}

/// What goes into one partition.
struct Part {
    partition: Arc<Partition>,
    draft: Draft,
    end: Offset,
    high_timestamp: Timestamp,
    rows: Vec<Row>,
    answers: Vec<(Reply, Outcome)>,
    tally: Tally,
}

/// What a commit holds, for whoever counts.
#[derive(Debug, Default)]
struct Tally {
    records: u64,
    bytes: u64,
    duplicates: u64,
    out_of_order: u64,
    fenced: u64,
}

impl Tally {
    fn new_batch(&mut self, batch: &NewBatch) {
        self.records += u64::try_from(batch.header.last_offset_delta).unwrap_or(0) + 1;
        self.bytes += batch.bytes.len() as u64;
    }

    fn refused(&mut self, error: &AppendError) {
        let code = error.response();
        let fenced = [ResponseError::InvalidProducerEpoch, ResponseError::ProducerFenced].contains(&code);
        self.fenced += u64::from(fenced);
        self.out_of_order += u64::from(code == ResponseError::OutOfOrderSequenceNumber);
    }

    fn count(&self, metrics: &Metrics) {
        metrics.produced_records.add(self.records);
        metrics.produced_bytes.add(self.bytes);
        metrics.duplicates.add(self.duplicates);
        metrics.out_of_order.add(self.out_of_order);
        metrics.fenced.add(self.fenced);
    }
}

impl Commit {
    /// Judges everything now, by what is durable now.
    pub(super) fn build(works: Vec<Work>, now: Timestamp) -> Self {
        let mut order: HashMap<(PartitionId, i32), usize> = HashMap::new();
        let mut waiting: Vec<(Arc<Partition>, Vec<Work>)> = Vec::new();
        for work in works {
            let partition = &work.batch.partition;
            let index = *order.entry((partition.id, partition.epoch())).or_insert_with(|| {
                waiting.push((Arc::clone(partition), Vec::new()));
                waiting.len() - 1
            });
            waiting[index].1.push(work);
        }
        let mut parts: Vec<_> =
            waiting.into_iter().map(|(partition, works)| Part::build(partition, works, now)).collect();
        parts.sort_by_key(|part| part.partition.id);
        Self { parts }
    }

    /// What the store is asked to write; `None`: nothing.
    pub(super) fn request(&self) -> Option<Append> {
        let touched = || self.parts.iter().filter(|part| !part.rows.is_empty());
        let led: Vec<_> = touched().map(|part| (part.partition.id, part.partition.epoch())).collect();
        let rows = touched().flat_map(|part| part.rows.iter().cloned()).collect();
        (!led.is_empty()).then_some(Append { led, rows })
    }

    /// For a planted bug: the producers as they will be when this commit is durable, which it is not yet.
    pub(super) fn undurable_snapshots(&self) -> Vec<(Arc<Partition>, ProducerSnapshot)> {
        let touched = self.parts.iter().filter(|part| !part.rows.is_empty());
        let snapshot = |part: &Part| {
            let mut producers = part.partition.durable(|state| state.producers.clone());
            producers.keep(part.draft.clone());
            (Arc::clone(&part.partition), producers.snapshot(part.end))
        };
        touched.map(snapshot).collect()
    }

    /// Leaves out partitions that the store refused, and answers who waited for them. The epochs of those that went.
    pub(super) fn refuse(&mut self, refused: &[PartitionId]) -> Vec<(PartitionId, i32)> {
        let (out, kept) = std::mem::take(&mut self.parts)
            .into_iter()
            .partition(|part| !part.rows.is_empty() && refused.contains(&part.partition.id));
        self.parts = kept;
        let out: Vec<Part> = out;
        let gone = out.iter().map(|part| (part.partition.id, part.partition.epoch())).collect();
        out.into_iter().for_each(|part| part.fail(&AppendError::NotLeader));
        gone
    }

    /// Throws everything away.
    pub(super) fn fail(self, error: &AppendError) {
        self.parts.into_iter().for_each(|part| part.fail(error));
    }

    /// It is durable: makes it visible, then answers.
    pub(super) fn publish(self, cache: &TailCache, metrics: &Metrics) {
        self.parts.iter().for_each(|part| part.tally.count(metrics));
        let answers: Vec<_> = self.parts.into_iter().map(|part| part.publish(cache)).collect();
        crate::fault::point("append.before_answer");
        for (reply, outcome) in answers.into_iter().flatten() {
            // One who does not wait any more (a closed connection) is no fault.
            drop(reply.answer.send(outcome));
        }
    }
}

impl Part {
    fn build(partition: Arc<Partition>, works: Vec<Work>, now: Timestamp) -> Self {
        let mut part = partition.durable(|state| Self {
            partition: Arc::clone(&partition),
            draft: Draft::default(),
            end: state.end,
            high_timestamp: state.high_timestamp,
            rows: Vec::new(),
            answers: Vec::with_capacity(works.len()),
            tally: Tally::default(),
        });
        if !partition.is_led() {
            part.answers.extend(works.into_iter().map(|work| (work.reply, Err(AppendError::NotLeader))));
            return part;
        }
        let mut left: usize = works.iter().map(|work| work.batch.bytes.len()).sum();
        let mut writer = RowWriter::default();
        partition.durable(|state| {
            for Work { batch, reply } in works {
                let size = batch.bytes.len();
                let outcome = part.take(state, &batch, now, &mut writer, left);
                left -= size;
                if let Err(error) = &outcome {
                    part.tally.refused(error);
                }
                part.answers.push((reply, outcome));
            }
        });
        writer.finish(&mut part);
        part
    }

    /// Judges one batch, and gives it the next offsets if it is new.
    fn take(
        &mut self,
        state: &State,
        batch: &NewBatch,
        now: Timestamp,
        writer: &mut RowWriter,
        left: usize,
    ) -> Outcome {
        let claim = Claim::of(&batch.header);
        if let Some(claim) = &claim
            && let Verdict::Duplicate(entry) = self.draft.judge(&state.producers, claim)?
        {
            self.tally.duplicates += 1;
            return Ok(Written { base_offset: entry.base_offset, append_time: entry.timestamp, log_start: 0 });
        }
        if claim.is_none() && batch.header.is_transactional() {
            let producer_id = batch.header.producer_id;
            return Err(crate::rules::producer_error::ProducerError::InvalidTransactionState { producer_id }.into());
        }
        self.tally.new_batch(batch);
        let base_offset = self.end;
        let timestamp = match batch.time {
            Time::Kept => batch.header.max_timestamp,
            Time::Corrected(timestamp) => timestamp,
            Time::Append => now,
        };
        if writer.is_full(batch.bytes.len()) {
            writer.finish(self);
        }
        writer.put(batch, base_offset, self.partition.epoch(), now, left);
        self.end = base_offset + i64::from(batch.header.last_offset_delta) + 1;
        self.high_timestamp = self.high_timestamp.max(timestamp);
        if let Some(claim) = &claim {
            self.draft.accept(&state.producers, claim, base_offset, timestamp, now);
        }
        let append_time = if batch.time == Time::Append { now } else { -1 };
        Ok(Written { base_offset, append_time, log_start: 0 })
    }

    fn fail(self, error: &AppendError) {
        for (reply, _) in self.answers {
            drop(reply.answer.send(Err(error.clone())));
        }
    }

    fn publish(mut self, cache: &TailCache) -> Vec<(Reply, Outcome)> {
        if !self.rows.is_empty() {
            let bytes: usize = self.rows.iter().map(|row| row.data.len()).sum();
            cache.push(&self.partition, self.rows);
            self.partition.publish(self.draft, self.end, self.high_timestamp, bytes as u64);
        }
        let log_start = self.partition.log_start();
        for (_, outcome) in &mut self.answers {
            if let Ok(written) = outcome {
                written.log_start = log_start;
            }
        }
        self.answers
    }
}

/// Puts batches end to end: the one copy that a batch gets on its way in.
#[derive(Default)]
struct RowWriter {
    buffer: BytesMut,
    base_offset: Offset,
}

impl RowWriter {
    fn is_full(&self, next: usize) -> bool {
        !self.buffer.is_empty() && self.buffer.len() + next > ROW
    }

    /// `left`: bytes that may still come, this batch included, so that the row's memory is taken once and fits.
    fn put(&mut self, batch: &NewBatch, base_offset: Offset, epoch: i32, now: Timestamp, left: usize) {
        if self.buffer.is_empty() {
            self.base_offset = base_offset;
            self.buffer.reserve(left.min(ROW).max(batch.bytes.len()));
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&batch.bytes);
        let copy = &mut self.buffer[start..];
        stamp(copy, base_offset, epoch);
        match batch.time {
            Time::Kept => {}
            Time::Corrected(timestamp) => set_max_timestamp(copy, timestamp),
            Time::Append => set_append_time(copy, now),
        }
    }

    fn finish(&mut self, part: &mut Part) {
        if !self.buffer.is_empty() {
            part.rows.push(Row {
                partition: part.partition.id,
                base_offset: self.base_offset,
                last_offset: part.end - 1,
                high_timestamp: part.high_timestamp,
                data: std::mem::take(&mut self.buffer).freeze(),
            });
        }
    }
}
