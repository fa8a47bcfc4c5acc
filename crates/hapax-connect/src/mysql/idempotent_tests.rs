use hapax_engine::sink::Written;
use hapax_engine::sink::{IdempotentSink as _, Upserted};
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;

use super::super::rig::{batch, keyed, texts};
use super::super::sample::{Place, run};
use super::*;

struct Rig {
    sink: MysqlIdempotentSink,
    look: Session,
    _place: Place,
}

async fn rig(mode: ConflictMode) -> Rig {
    let place = Place::new().await;
    let mut look = place.bare().await;
    let ddl = "CREATE TABLE t (id bigint PRIMARY KEY, a text, b int CHECK (b <> 13), n double, j json)";
    run(&mut look, ddl).await;
    let mut config = MysqlSinkConfig::new(place.url(), "t");
    keyed(mode)(&mut config);
    let pool = config.pool();
    let mut sink = MysqlIdempotentSink::new(config, pool, DedupStrategy::SourceOffset);
    sink.inspect().await.unwrap();
    Rig { sink, look, _place: place }
}

impl Rig {
    async fn upsert(&mut self, inputs: &[&str]) -> Upserted {
        let batch = batch(self.sink.fields(), 0, inputs);
        self.sink.upsert_batch(Arc::new(batch)).await.unwrap()
    }

    async fn rows(&mut self) -> Vec<String> {
        texts(&mut self.look, "SELECT concat_ws(' ', id, a, b, n, j) FROM t ORDER BY id").await
    }
}

/// Goal: an upsert creates a row, and writing it again changes nothing. Method: once, twice.
#[tokio::test]
async fn writing_twice_leaves_what_writing_once_leaves() {
    let mut rig = rig(ConflictMode::Update).await;
    let batch = batch(rig.sink.fields(), 0, &[r#"{"id":1,"a":"x\ny","b":2,"n":1.5,"j":[1]}"#]);
    let once = rig.sink.upsert(&batch.event(0)).await.unwrap();
    let rows = rig.rows().await;
    assert_eq!((once.inserts, rows.as_slice()), (1, ["1 x\ny 2 1.5 [1]".to_owned()].as_slice()));
    let twice = rig.sink.upsert(&batch.event(0)).await.unwrap();
    assert_eq!((twice.inserts, twice.updates), (0, 1));
    assert_eq!(rig.rows().await, rows);
}

/// Goal: a thousand upserts in a batch, and the same again after a failure, leave a thousand rows; in `ignore` the
/// second time writes nothing at all and is no failure either.
#[tokio::test]
async fn a_replayed_batch_leaves_the_same_rows() {
    for mode in [ConflictMode::Update, ConflictMode::Ignore] {
        let mut rig = rig(mode).await;
        let inputs: Vec<String> =
            (0..1000).map(|id| format!("{{\"id\":{id},\"a\":\"x\",\"b\":1,\"n\":0,\"j\":0}}")).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        assert_eq!(rig.upsert(&inputs).await.written.inserts, 1000);
        let rows = rig.rows().await;
        let again = rig.upsert(&inputs).await.written;
        assert_eq!((again.updates + again.unchanged, again.inserts), (1000, 0));
        assert_eq!((rows.len(), rig.rows().await), (1000, rows));
        assert_eq!(rig.upsert(&[]).await.written, Written::default());
    }
}

/// Goal: refused rows are returned, and the rest is there. Method: one that does not fit, one that the table refuses.
#[tokio::test]
async fn refused_rows_are_returned() {
    let mut rig = rig(ConflictMode::Update).await;
    let done =
        rig.upsert(&[r#"{"id":1,"b":1}"#, r#"{"id":2,"b":"no"}"#, r#"{"id":3,"b":13}"#, r#"{"id":4,"b":4}"#]).await;
    let refused: Vec<(usize, &str)> = done.rejected.iter().map(|(event, cause)| (*event, cause.code)).collect();
    assert_eq!(refused, [(1, "HX2020"), (2, "HX2032")]);
    assert_eq!(rig.rows().await, ["1 1", "4 4"]);
    let metrics = rig.sink.metrics();
    assert_eq!((metrics.upserts, metrics.inserts, metrics.failures), (2, 2, 2));
    let alone = batch(rig.sink.fields(), 0, &[r#"{"id":5,"b":13}"#]);
    assert!(matches!(rig.sink.upsert(&alone.event(0)).await, Err(SinkError::Rejected { .. })));
}

/// Goal: nothing of ours is in the target: no table. Method: the catalogue after some writing.
#[tokio::test]
async fn the_target_gets_nothing_of_ours() {
    let mut rig = rig(ConflictMode::Update).await;
    rig.upsert(&[r#"{"id":1}"#]).await;
    let all = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()";
    assert_eq!(texts(&mut rig.look, all).await, ["t"]);
}

/// Goal: the key is the entity's in `update` and the event's in `ignore`. Method: both.
#[tokio::test]
async fn the_key_follows_from_the_mode() {
    let (update, ignore) = (rig(ConflictMode::Update).await, rig(ConflictMode::Ignore).await);
    let batch = batch(update.sink.fields(), 0, &[r#"{"id":1}"#]);
    let event = batch.event(0);
    assert_eq!(update.sink.derive_dedup_key(&event), event.entity_key());
    assert_eq!(ignore.sink.derive_dedup_key(&event), event.event_key());
    assert_eq!(update.sink.dedup_strategy(), &DedupStrategy::SourceOffset);
}

/// Goal: a changed table is noticed here too. Method: add a column, then drop the table.
#[tokio::test]
async fn a_changed_schema_is_healed_or_named() {
    let mut rig = rig(ConflictMode::Update).await;
    rig.upsert(&[r#"{"id":1}"#]).await;
    run(&mut rig.look, "ALTER TABLE t ADD COLUMN c text DEFAULT 'c'").await;
    rig.upsert(&[r#"{"id":2}"#]).await;
    assert!(rig.sink.fields().contains(&FieldPath::of_name("c")));
    run(&mut rig.look, "DROP TABLE t").await;
    let batch = batch(rig.sink.fields(), 0, &[r#"{"id":3}"#]);
    let error = rig.sink.upsert_batch(Arc::new(batch)).await.unwrap_err();
    assert!(matches!(error, SinkError::SchemaEvolution { .. }), "{error}");
}
