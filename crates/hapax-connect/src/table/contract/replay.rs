//! The clauses of dead letters written again.

use hapax_engine::batch::Batch;
use hapax_engine::letters::{LetterChoice, LetterStore, Replay, ReplayRule, StoredLetter};
use hapax_engine::sink::Target as _;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;

use crate::table::column::LiveColumn;
use crate::table::rig::{Database, Rig};
use crate::table::sample::batch;
use crate::table::seen::Inspection;
use crate::table::sink::{Home, TableSink};

type Column<D> = <<<D as Database>::Home as Home>::Inspected as Inspection>::Column;

const POISONED: [&str; 4] =
    [r#"{"id":1,"b":1}"#, r#"{"id":2,"b":"two"}"#, r#"{"id":3,"b":"three"}"#, r#"{"id":4,"b":4}"#];

/// Two letters, of inputs 1 and 2, and a table that takes them now.
async fn rig_with_letters<D: Database>(mode: ConflictMode) -> Rig<D> {
    let version = <Column<D> as LiveColumn>::POSITION_TYPE;
    let ddl = format!("CREATE TABLE t (id int NOT NULL UNIQUE, b int, hapax_version {version})");
    let mut rig: Rig<D> = Rig::keyed(&ddl, mode).await;
    rig.deliver(&POISONED).await;
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "4"]);
    // Both in place: the table stays the same one.
    rig.run("ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b text").await;
    rig
}

async fn letters(sink: &mut impl LetterStore) -> Vec<StoredLetter> {
    sink.list(&LetterChoice::default(), 0, 100).await.unwrap()
}

fn outputs(first: u64) -> Batch {
    batch(&[FieldPath::of_name("id"), FieldPath::of_name("b")], first, &POISONED[1..3])
}

async fn ids(sink: &mut impl LetterStore) -> Vec<i64> {
    letters(sink).await.iter().map(|letter| letter.id).collect()
}

/// Goal: a replayed letter's row is there, the letter is marked, and neither position nor epoch has moved.
/// Method: replay both, then both again.
pub(crate) async fn a_replay_writes_and_marks_in_one<D: Database>()
where
    TableSink<D::Home>: Replay,
{
    let mut rig = rig_with_letters::<D>(ConflictMode::Append).await;
    let ids = ids(&mut rig.sink).await;
    rig.claim().await;
    let before = rig.progress.clone();
    let done = rig.sink.replay(&ids, outputs(0), ReplayRule::Any).await.unwrap();
    assert_eq!((done.replayed, done.taken, done.refused.len(), done.written.inserts), (2, 0, 0, 2));
    assert_eq!(rig.texts("SELECT b FROM t WHERE b IS NOT NULL ORDER BY id").await, ["two", "three"]);
    let again = rig.sink.replay(&ids, outputs(0), ReplayRule::Any).await.unwrap();
    assert_eq!((again.replayed, again.taken), (0, 2));
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["4"]);
    assert_eq!(rig.sink.look().await.unwrap(), before);
    assert_eq!(letters(&mut rig.sink).await, []);
}

/// Goal: a letter that is refused again stays dead with the newer reason; the other is replayed. Method: a new rule,
/// named `not_two`, that refuses the row 2 with `code`.
pub(crate) async fn a_letter_refused_again_stays_dead_with_the_new_reason<D: Database>(rule: &str, code: &str)
where
    TableSink<D::Home>: Replay,
{
    let mut rig = rig_with_letters::<D>(ConflictMode::Append).await;
    rig.run(rule).await;
    let ids = ids(&mut rig.sink).await;
    let done = rig.sink.replay(&ids, outputs(0), ReplayRule::Any).await.unwrap();
    assert_eq!((done.replayed, done.refused.len(), done.refused[0].0), (1, 1, ids[0]));
    let left = letters(&mut rig.sink).await;
    assert_eq!((left.len(), left[0].id, left[0].code.as_str()), (1, ids[0], code));
    assert!(left[0].message.contains("not_two"), "{}", left[0].message);
    assert_eq!(done.refused[0].1, format!("{code}: {}", left[0].message));
    let undecodable = batch(&[FieldPath::of_name("id")], 0, &["no event"]);
    let done = rig.sink.replay(&ids[..1], undecodable, ReplayRule::Any).await.unwrap();
    assert_eq!((done.replayed, done.refused.len()), (0, 1));
}

/// Goal: of two replays at once one wins. Method: both start together, on connections of their own.
pub(crate) async fn two_replays_at_once_write_once<D: Database>()
where
    TableSink<D::Home>: Replay,
{
    let mut rig = rig_with_letters::<D>(ConflictMode::Append).await;
    let ids = ids(&mut rig.sink).await;
    let mut other = D::sink(&rig.config);
    let (one, two) = tokio::join!(
        rig.sink.replay(&ids, outputs(0), ReplayRule::Any),
        other.replay(&ids, outputs(0), ReplayRule::Any)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.replayed + two.replayed, one.taken + two.taken), (2, 2));
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["4"]);
}

/// Goal: in `newer` a letter keeps the version of its own position: it does not overwrite what came after it.
/// Method: a later event of the same key is delivered before the replay.
pub(crate) async fn a_replayed_letter_keeps_its_place_in_the_lane<D: Database>()
where
    TableSink<D::Home>: Replay,
{
    let mut rig = rig_with_letters::<D>(ConflictMode::Newer).await;
    rig.claim().await;
    rig.deliver(&[r#"{"id":2,"b":"later"}"#]).await;
    let ids = ids(&mut rig.sink).await;
    let done = rig.sink.replay(&ids, outputs(1), ReplayRule::Any).await.unwrap();
    assert_eq!((done.replayed, done.written.unchanged), (2, 1));
    assert_eq!(rig.texts("SELECT b FROM t WHERE b IS NOT NULL ORDER BY id").await, ["later", "three"]);
}

/// Goal: a discarded letter is not replayed. Method: discard, then replay.
pub(crate) async fn a_discarded_letter_is_gone<D: Database>()
where
    TableSink<D::Home>: Replay,
{
    let mut rig = rig_with_letters::<D>(ConflictMode::Append).await;
    let ids = ids(&mut rig.sink).await;
    assert_eq!(rig.sink.discard(&ids[..1]).await.unwrap(), 1);
    let done = rig.sink.replay(&ids, outputs(0), ReplayRule::Any).await.unwrap();
    assert_eq!((done.replayed, done.taken), (1, 1));
    assert_eq!(rig.texts("SELECT b FROM t WHERE b IS NOT NULL").await, ["three"]);
}

/// Goal: by the rule for absent rows a letter is replayed exactly if no row of its key is there, and one that is left
/// alone keeps its reason. Method: `update`; a later event of one letter's key is delivered before the replay; then two
/// letters of one new key, which are written in their order.
pub(crate) async fn only_letters_without_a_row_are_replayed<D: Database>()
where
    TableSink<D::Home>: Replay,
{
    let mut rig = rig_with_letters::<D>(ConflictMode::Update).await;
    rig.claim().await;
    rig.deliver(&[r#"{"id":2,"b":"later"}"#]).await;
    let before = letters(&mut rig.sink).await;
    let ids = ids(&mut rig.sink).await;
    let done = rig.sink.replay(&ids, outputs(0), ReplayRule::OnlyAbsent).await.unwrap();
    assert_eq!((done.replayed, done.taken, done.refused.len(), done.present), (1, 0, 0, vec![ids[0]]));
    assert_eq!(rig.texts("SELECT b FROM t WHERE b IS NOT NULL ORDER BY id").await, ["later", "three"]);
    assert_eq!(letters(&mut rig.sink).await, before[..1], "it is as it was");
    let fields = [FieldPath::of_name("id"), FieldPath::of_name("b")];
    let both = batch(&fields, 0, &[r#"{"id":9,"b":"older"}"#, r#"{"id":9,"b":"newer"}"#]);
    rig.run(&format!("UPDATE {}dead_letters SET state = 'dead'", D::OURS)).await;
    let done = rig.sink.replay(&ids, both, ReplayRule::OnlyAbsent).await.unwrap();
    assert_eq!((done.replayed, done.present), (2, vec![]));
    assert_eq!(rig.texts("SELECT b FROM t WHERE id = 9").await, ["newer"]);
}
