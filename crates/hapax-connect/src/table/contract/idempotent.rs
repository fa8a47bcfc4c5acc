//! The clauses of a sink whose progress is elsewhere.

use std::sync::Arc;

use hapax_engine::second_pass::SecondPass;
use hapax_engine::sink::{IdempotentSink as _, Reaction, SinkError, UpsertLimits, WriteOutcome, Written};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::DedupStrategy;
use hapax_model::mode::ConflictMode;
use hapax_model::rejects::{OnReject, RejectRule};

use crate::table::idempotent::KeyedSink;
use crate::table::rig::{Database, by_id, strs};
use crate::table::sample::batch;

struct Rig<D: Database> {
    sink: KeyedSink<D::Home>,
    // Last: a database is dropped after everybody has left it.
    database: D,
}

/// The table `t` with a number `n` and a value `j` of any JSON, of these types.
async fn rig<D: Database>(mode: ConflictMode) -> Rig<D> {
    let (number, json) = D::NUMBER_AND_JSON;
    let ddl =
        format!("CREATE TABLE t (id bigint NOT NULL PRIMARY KEY, a text, b int CHECK (b <> 13), n {number}, j {json})");
    let database = D::foreign(&ddl).await;
    let mut config = database.config();
    by_id(D::table(&mut config), mode);
    let mut sink = D::keyed_sink(config);
    sink.inspect().await.unwrap();
    Rig { sink, database }
}

fn limits(on_reject: OnReject) -> UpsertLimits {
    UpsertLimits { epoch: Epoch(1), rejects: RejectRule::new(on_reject, 1000), pass: SecondPass::default() }
}

impl<D: Database> Rig<D> {
    async fn upsert(&mut self, inputs: &[&str]) -> WriteOutcome {
        let batch = batch(self.sink.fields(), 0, inputs);
        self.sink.upsert_batch(Arc::new(batch), &limits(OnReject::DeadLetter)).await.unwrap()
    }

    async fn rows(&mut self) -> Vec<String> {
        self.database.texts("SELECT concat_ws(' ', id, a, b, n, j) FROM t ORDER BY id").await
    }
}

/// Goal: an upsert creates a row, and writing it again changes nothing. Method: once, twice.
pub(crate) async fn writing_twice_leaves_what_writing_once_leaves<D: Database>() {
    let mut rig = rig::<D>(ConflictMode::Update).await;
    let batch = batch(rig.sink.fields(), 0, &[r#"{"id":1,"a":"x\ny","b":2,"n":1.5,"j":[1]}"#]);
    let once = rig.sink.upsert(&batch.event(0)).await.unwrap();
    let rows = rig.rows().await;
    assert_eq!((once.inserts, rows.as_slice()), (1, ["1 x\ny 2 1.5 [1]".to_owned()].as_slice()));
    let twice = rig.sink.upsert(&batch.event(0)).await.unwrap();
    assert_eq!((twice.inserts, twice.updates), (0, 1));
    assert_eq!(rig.rows().await, rows);
}

/// Goal: a thousand upserts in a batch, and the same again after a failure, leave a thousand rows; in `ignore` the
/// second time writes nothing at all and is no failure either. Method: both modes, and an empty batch.
pub(crate) async fn a_replayed_batch_leaves_the_same_rows<D: Database>() {
    for mode in [ConflictMode::Update, ConflictMode::Ignore] {
        let mut rig = rig::<D>(mode).await;
        let inputs: Vec<String> =
            (0..1000).map(|id| format!("{{\"id\":{id},\"a\":\"x\",\"b\":1,\"n\":0,\"j\":0}}")).collect();
        let inputs = strs(&inputs);
        assert_eq!(rig.upsert(&inputs).await.written.inserts, 1000);
        let rows = rig.rows().await;
        let again = rig.upsert(&inputs).await.written;
        let (updates, unchanged) = if mode == ConflictMode::Update { (1000, 0) } else { (0, 1000) };
        assert_eq!((again.updates, again.unchanged, again.inserts), (updates, unchanged, 0));
        assert_eq!((rows.len(), rig.rows().await), (1000, rows));
        assert_eq!(rig.upsert(&[]).await.written, Written::default());
    }
}

/// Goal: refused rows are returned, and the rest is there. Method: one that does not fit, one that the table refuses.
pub(crate) async fn refused_rows_are_returned<D: Database>() {
    let mut rig = rig::<D>(ConflictMode::Update).await;
    let done =
        rig.upsert(&[r#"{"id":1,"b":1}"#, r#"{"id":2,"b":"no"}"#, r#"{"id":3,"b":13}"#, r#"{"id":4,"b":4}"#]).await;
    let refused: Vec<(usize, &str)> = done.refused.iter().map(|(event, cause)| (*event, cause.code)).collect();
    assert_eq!(refused, [(1, "HX2020"), (2, "HX2032")]);
    assert_eq!(rig.rows().await, ["1 1", "4 4"]);
    let metrics = rig.sink.metrics();
    assert_eq!((metrics.upserts, metrics.inserts, metrics.failures), (2, 2, 2));
    let alone = batch(rig.sink.fields(), 0, &[r#"{"id":5,"b":13}"#]);
    assert!(matches!(rig.sink.upsert(&alone.event(0)).await, Err(SinkError::Rejected { .. })));
}

/// Goal: with `onReject: stop` nothing of the batch is there. Method: one refused row among good ones.
pub(crate) async fn too_many_refused_rows_leave_nothing_behind<D: Database>() {
    let mut rig = rig::<D>(ConflictMode::Update).await;
    let batch = batch(rig.sink.fields(), 0, &[r#"{"id":1,"b":1}"#, r#"{"id":3,"b":13}"#, r#"{"id":4,"b":4}"#]);
    let stopped = rig.sink.upsert_batch(Arc::new(batch), &limits(OnReject::Stop)).await;
    assert!(matches!(stopped, Err(SinkError::Rejected { .. })), "{stopped:?}");
    assert_eq!(rig.rows().await, [""; 0]);
}

/// Goal: an upsert whose session is ended leaves nothing, and the same sink repeats it over another one, as often as one
/// likes. Method: a table that sleeps, and somebody who ends the session meanwhile; then the same batch twice.
pub(crate) async fn an_upsert_whose_session_was_ended_is_repeated<D: Database>(
    mut database: D,
    ending: impl Future<Output = ()>,
) {
    let mut config = database.config();
    by_id(D::table(&mut config), ConflictMode::Update);
    let mut sink = D::keyed_sink(config);
    sink.inspect().await.unwrap();
    let batch = Arc::new(batch(sink.fields(), 0, &[r#"{"id":1,"b":1}"#]));
    let limits = limits(OnReject::DeadLetter);
    let (done, ()) = tokio::join!(sink.upsert_batch(Arc::clone(&batch), &limits), ending);
    let error = done.unwrap_err();
    assert_eq!(error.reaction(), Reaction::Retry, "{error}");
    assert!(matches!(error, SinkError::ConnectionLost { .. }), "{error}");
    assert_eq!(database.texts("SELECT b FROM t").await, [""; 0]);
    for expected in [(1, 0), (0, 1)] {
        let written = sink.upsert_batch(Arc::clone(&batch), &limits).await.unwrap().written;
        assert_eq!((written.inserts, written.updates), expected);
        assert_eq!(database.texts("SELECT b FROM t").await, ["1"]);
    }
}

/// Goal: a row that does not fit is returned, whoever of its key takes its place in the batch; `onReject: stop` is not
/// evaded. Method: a misfit before a delete, one before an update, and in `ignore` one behind the row that stays.
pub(crate) async fn a_row_is_judged_whoever_takes_its_place<D: Database>() {
    let misfit = r#"{"id":1,"a":"x","b":"no","n":1.5,"j":[1]}"#;
    let good = r#"{"id":1,"a":"x","b":1,"n":1.5,"j":[1]}"#;
    let delete = r#"{"id":1,"op":"d"}"#;
    for (mode, inputs, guilty, rows) in [
        (ConflictMode::Update, [misfit, delete], 0, &[][..]),
        (ConflictMode::Update, [misfit, good], 0, &["1 x 1 1.5 [1]"]),
        (ConflictMode::Ignore, [good, misfit], 1, &["1 x 1 1.5 [1]"]),
    ] {
        let mut rig = rig::<D>(mode).await;
        let batch = batch(rig.sink.fields(), 0, &inputs);
        let stopped = rig.sink.upsert_batch(Arc::new(batch), &limits(OnReject::Stop)).await;
        assert!(matches!(stopped, Err(SinkError::Rejected { .. })), "{inputs:?}: {stopped:?}");
        assert_eq!(rig.rows().await, [""; 0], "{inputs:?}");
        let done = rig.upsert(&inputs).await;
        let refused: Vec<(usize, &str)> = done.refused.iter().map(|(event, cause)| (*event, cause.code)).collect();
        assert_eq!(refused, [(guilty, "HX2020")], "{inputs:?}");
        assert_eq!(rig.rows().await, rows, "{inputs:?}");
    }
}

/// Goal: nothing of ours is in the target. Method: all that the catalogue has after some writing, by `all`.
pub(crate) async fn the_target_gets_nothing_of_ours<D: Database>(all: &str) {
    let mut rig = rig::<D>(ConflictMode::Update).await;
    rig.upsert(&[r#"{"id":1}"#]).await;
    assert_eq!(rig.database.texts(all).await, ["t"]);
}

/// Goal: the key is the entity's in `update` and the event's in `ignore`. Method: both.
pub(crate) async fn the_key_follows_from_the_mode<D: Database>() {
    let (update, ignore) = (rig::<D>(ConflictMode::Update).await, rig::<D>(ConflictMode::Ignore).await);
    let batch = batch(update.sink.fields(), 0, &[r#"{"id":1}"#]);
    let event = batch.event(0);
    assert_eq!(update.sink.derive_dedup_key(&event), event.entity_key());
    assert_eq!(ignore.sink.derive_dedup_key(&event), event.event_key());
    assert_eq!(update.sink.dedup_strategy(), &DedupStrategy::SourceOffset);
}

/// Goal: a changed table is noticed here too. Method: add a column, then drop the table.
pub(crate) async fn a_changed_schema_is_healed_or_named<D: Database>() {
    let mut rig = rig::<D>(ConflictMode::Update).await;
    rig.upsert(&[r#"{"id":1}"#]).await;
    let read_before = Arc::new(batch(rig.sink.fields(), 0, &[r#"{"id":2}"#]));
    rig.database.run("ALTER TABLE t ADD COLUMN c text DEFAULT 'c'").await;
    let error = rig.sink.upsert_batch(read_before, &limits(OnReject::DeadLetter)).await.unwrap_err();
    assert!(matches!(error, SinkError::FieldsAdded { .. }), "{error}");
    assert!(rig.sink.fields().contains(&FieldPath::of_name("c")));
    rig.upsert(&[r#"{"id":2}"#]).await;
    rig.database.run("DROP TABLE t").await;
    let batch = batch(rig.sink.fields(), 0, &[r#"{"id":3}"#]);
    let error = rig.sink.upsert_batch(Arc::new(batch), &limits(OnReject::DeadLetter)).await.unwrap_err();
    assert!(matches!(error, SinkError::SchemaEvolution { .. }), "{error}");
}
