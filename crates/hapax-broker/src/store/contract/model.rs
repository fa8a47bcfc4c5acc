//! The log against a model in memory: random operations, every answer compared.

use bytes::Bytes;
use fastrand::Rng;

use super::{row, topic};
use crate::model::{Offset, PartitionId};
use crate::store::{Append, Appended, Log, Replacement, Row, RowInfo, Store, StoreError, StoredRow};

/// Operations of one run.
const STEPS: usize = 400;

/// What the store must know of one partition.
struct Model {
    id: PartitionId,
    epoch: i32,
    log_start: Offset,
    rows: Vec<Row>,
}

impl Model {
    fn end(&self) -> Offset {
        self.rows.last().map_or(self.log_start, |row| row.last_offset + 1)
    }

    fn high(&self) -> i64 {
        self.rows.last().map_or(-1, |row| row.high_timestamp)
    }

    fn next_rows(&self, random: &mut Rng) -> Vec<Row> {
        let (mut base, mut high) = (self.end(), self.high());
        let mut rows = Vec::new();
        for _ in 0..random.usize(1..4) {
            let last = base + random.i64(0..20);
            high = high.max(random.i64(0..1000));
            rows.push(row(self.id, base, last, high, random.usize(1..3000)));
            base = last + 1;
        }
        rows
    }

    fn read(&self, from: Offset, below: Offset, max_bytes: usize) -> Vec<StoredRow> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        for row in self.rows.iter().filter(|row| row.last_offset >= from && row.base_offset < below) {
            if found.len() == 64 || !found.is_empty() && bytes >= max_bytes {
                break;
            }
            bytes += row.data.len();
            found.push(stored(row));
        }
        found
    }

    fn list(&self, from: Offset, limit: usize) -> Vec<RowInfo> {
        let rows = self.rows.iter().filter(|row| row.base_offset >= from).take(limit);
        rows.map(info).collect()
    }

    /// Rows that a trim may remove.
    fn below_start(&self) -> usize {
        let others = &self.rows[..self.rows.len().saturating_sub(1)];
        others.iter().take_while(|row| row.last_offset < self.log_start).count()
    }
}

fn stored(row: &Row) -> StoredRow {
    StoredRow { base_offset: row.base_offset, last_offset: row.last_offset, data: row.data.clone() }
}

fn info(row: &Row) -> RowInfo {
    RowInfo {
        base_offset: row.base_offset,
        last_offset: row.last_offset,
        size: u32::try_from(row.data.len()).unwrap(),
        high_timestamp: row.high_timestamp,
    }
}

/// Mostly the right epoch.
fn epoch(model: &Model, random: &mut Rng) -> i32 {
    if random.u8(0..10) == 0 { model.epoch + random.i32(-1..=1) } else { model.epoch }
}

/// Goal: the store and its description say the same, whatever is asked in whatever order.
/// Method: random operations on three partitions, under right and wrong epochs, compared with a model after each.
pub(crate) async fn the_log_does_what_a_model_does<S: Store>(store: &S) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let partitions = topic(store, "orders", 3).await.partitions;
    let new = |id: &PartitionId| Model { id: *id, epoch: 0, log_start: 0, rows: Vec::new() };
    let mut models: Vec<Model> = partitions.iter().map(new).collect();
    for _ in 0..STEPS {
        let index = random.usize(0..models.len());
        match random.u8(0..16) {
            0 => lead(store, &mut models[index]).await,
            1..5 => append(store, &mut models, &mut random).await,
            5 | 6 => change(store, &mut models[index], &mut random).await,
            7 => advance(store, &mut models[index], &mut random).await,
            8 => trim(store, &mut models[index], &mut random).await,
            _ => look(store, &models[index], &mut random).await,
        }
    }
}

async fn lead<S: Log>(store: &S, model: &mut Model) {
    let led = store.lead(&[model.id]).await.unwrap().remove(0);
    model.epoch += 1;
    assert_eq!((led.epoch, led.log_start), (model.epoch, model.log_start));
    assert_eq!((led.end, led.high_timestamp), (model.end(), model.high()));
}

async fn append<S: Log>(store: &S, models: &mut [Model], random: &mut Rng) {
    let mut group = Append::default();
    let mut refused = Vec::new();
    for model in models.iter().filter(|_| random.bool()).collect::<Vec<_>>() {
        let epoch = epoch(model, random);
        group.led.push((model.id, epoch));
        group.rows.extend(model.next_rows(random));
        if epoch != model.epoch {
            refused.push(model.id);
        }
    }
    let answer = store.append(group.clone()).await.unwrap();
    if refused.is_empty() {
        assert_eq!(answer, Appended::Done);
        for model in models {
            model.rows.extend(group.rows.iter().filter(|row| row.partition == model.id).cloned());
        }
    } else {
        assert_eq!(answer, Appended::Refused(refused));
    }
}

async fn change<S: Log>(store: &S, model: &mut Model, random: &mut Rng) {
    let others = model.rows.len().saturating_sub(1);
    let chosen: Vec<usize> = (0..others).filter(|_| random.u8(0..6) == 0).collect();
    let mut less = |row: &Row| (random.u8(0..3) > 0).then(|| row.data.slice(..random.usize(0..=row.data.len())));
    let replacement = |row: &Row, data| Replacement { base_offset: row.base_offset, data };
    let rows: Vec<_> = chosen.iter().map(|at| replacement(&model.rows[*at], less(&model.rows[*at]))).collect();
    let epoch = epoch(model, random);
    let answer = store.replace(model.id, epoch, rows.clone()).await;
    if epoch != model.epoch {
        assert_eq!(answer, Err(StoreError::Fenced));
        return;
    }
    assert_eq!(answer, Ok(()));
    for Replacement { base_offset, data } in rows {
        let at = model.rows.iter().position(|row| row.base_offset == base_offset).unwrap();
        match data {
            Some(data) => model.rows[at].data = data,
            None => drop(model.rows.remove(at)),
        }
    }
}

async fn advance<S: Log>(store: &S, model: &mut Model, random: &mut Rng) {
    let (epoch, to) = (epoch(model, random), random.i64(0..=model.end()));
    let answer = store.advance_log_start(model.id, epoch, to).await;
    if epoch == model.epoch {
        assert_eq!(answer, Ok(()));
        model.log_start = model.log_start.max(to);
    } else {
        assert_eq!(answer, Err(StoreError::Fenced));
    }
}

async fn trim<S: Log>(store: &S, model: &mut Model, random: &mut Rng) {
    let (epoch, max_bytes) = (epoch(model, random), random.usize(1..10_000));
    let answer = store.trim(model.id, epoch, max_bytes).await;
    if epoch != model.epoch {
        assert_eq!(answer, Err(StoreError::Fenced));
        return;
    }
    // How many rows make "about so many bytes" is the store's affair; that they are the first ones is not.
    let left = store.list(model.id, 0, usize::MAX >> 1).await.unwrap().len();
    let gone: Vec<Row> = model.rows.drain(..model.rows.len() - left).collect();
    assert_eq!(answer, Ok(gone.iter().map(|row| row.data.len() as u64).sum()));
    assert!(gone.iter().all(|row| row.last_offset < model.log_start), "{gone:?}");
    assert!(!gone.is_empty() || model.below_start() == 0);
    assert!(left > 0 || gone.is_empty());
}

async fn look<S: Log>(store: &S, model: &Model, random: &mut Rng) {
    let (from, below) = (random.i64(0..model.end() + 5), random.i64(0..model.end() + 5));
    let max_bytes = random.usize(0..20_000);
    let found = store.read(model.id, from, below, max_bytes).await.unwrap();
    assert_eq!(found, model.read(from, below, max_bytes), "read from {from} below {below}, {max_bytes} bytes");
    let limit = random.usize(1..20);
    assert_eq!(store.list(model.id, from, limit).await.unwrap(), model.list(from, limit));
    let time = random.i64(-1..1100);
    let expected = model.rows.iter().find(|row| row.high_timestamp >= time).map(stored);
    assert_eq!(store.row_at_time(model.id, time).await.unwrap(), expected, "time {time}");
    let bytes: u64 = model.rows.iter().map(|row| Bytes::len(&row.data) as u64).sum();
    let sizes = store.sizes(&[model.id]).await.unwrap();
    assert_eq!(sizes.first().map_or(0, |size| size.1), bytes);
}
