use hapax_services::Mariadb;

use super::super::test_database::{TestDatabase, quick};
use super::super::{Limits, MysqlUrl};
use super::*;

async fn with_row(database: &TestDatabase) -> Session {
    let mut session = database.session().await;
    session.text("CREATE TABLE t (id int PRIMARY KEY) ENGINE=InnoDB; INSERT INTO t VALUES (1)").await.unwrap();
    session
}

async fn lock(session: &mut Session) {
    session.begin().await.unwrap();
    session.text("SELECT * FROM t WHERE id = 1 FOR UPDATE").await.unwrap();
}

/// MariaDB tells of transactions from a copy that it renews only if nobody has read it for a tenth of a second: two who
/// ask all the time keep it old for each other.
static ONE_ASKS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Waits until `id` waits for a lock, then ends those who hold it.
async fn end_those_in_front_of(watcher: &mut Session, id: u64) -> Vec<Blocker> {
    let _alone = ONE_ASKS.lock().await;
    for _ in 0..10 {
        let blockers = end_blockers(watcher, id).await.unwrap();
        if !blockers.is_empty() {
            return blockers;
        }
    }
    panic!("nobody blocks {id}");
}

/// Goal: a worker that hangs within its transaction is ended, and the one behind it goes on; the ended one learns of it.
/// Method: three sessions: the holder, the one behind it, the watcher.
#[tokio::test]
async fn our_own_blocker_is_ended() {
    let database = TestDatabase::new();
    let mut watcher = with_row(&database).await;
    let mut holder = database.session().await;
    let mut behind = database.session().await;
    lock(&mut holder).await;
    let (holder_id, id) = (holder.connection_id(), behind.connection_id());
    let ((), blockers) = tokio::join!(lock(&mut behind), end_those_in_front_of(&mut watcher, id));
    assert_eq!(blockers.len(), 1, "{blockers:?}");
    let found = &blockers[0];
    assert_eq!((found.connection_id, &found.end), (holder_id, &BlockerEnd::Ended));
    assert!(found.user.starts_with("root@"), "{found}");
    assert!(found.to_string().ends_with("ended"), "{found}");
    behind.rollback().await.unwrap();
    let fault = holder.text("SELECT 1").await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Reconnect, "{fault}");
    assert!(!holder.is_reusable());
}

/// Goal: another program's session is never ended, only named. Method: a plain client holds the row.
#[tokio::test]
async fn a_strangers_session_is_only_named() {
    let database = TestDatabase::new();
    let mut watcher = with_row(&database).await;
    let mut stranger = hapax_services::MysqlClient::connect(database.port(), database.name()).unwrap();
    stranger.query("BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE").unwrap();
    let limits = Limits { lock: Duration::from_secs(5), ..quick() };
    let mut behind = Session::connect(&database.url(), &limits).await.unwrap();
    behind.begin().await.unwrap();
    let id = behind.connection_id();
    let waiting = behind.text("SELECT * FROM t WHERE id = 1 FOR UPDATE");
    let (waited, blockers) = tokio::join!(waiting, end_those_in_front_of(&mut watcher, id));
    assert_eq!(waited.unwrap_err().number, Some(1205));
    assert_eq!((blockers[0].connection_id, &blockers[0].end), (u64::from(stranger.id()), &BlockerEnd::NotOurs));
    assert!(blockers[0].to_string().contains(&format!("KILL {}", stranger.id())), "{}", blockers[0]);
    stranger.query("SELECT 1").expect("it lives");
}

/// Goal: a user without the right to see is told which one to grant; one who may see but not end, likewise.
/// Method: three users of one server.
#[tokio::test]
async fn missing_rights_are_named() {
    let server = Mariadb::builder().start().unwrap();
    let users = "CREATE DATABASE d; CREATE USER a; CREATE USER b; CREATE USER c; GRANT ALL ON d.* TO a, b, c; \
                 GRANT PROCESS ON *.* TO c";
    server.query(users).unwrap();
    server.query("CREATE TABLE d.t (id int PRIMARY KEY) ENGINE=InnoDB; INSERT INTO d.t VALUES (1)").unwrap();
    let url = |user: &str| MysqlUrl::parse(&format!("mysql://{user}@127.0.0.1:{}/d", server.port())).unwrap();
    let connect = async |user: &str| Session::connect(&url(user), &quick()).await.unwrap();
    let (mut holder, mut behind, mut blind, mut seeing) =
        (connect("a").await, connect("b").await, connect("b").await, connect("c").await);
    lock(&mut holder).await;
    let id = behind.connection_id();
    let ((), ()) = tokio::join!(lock(&mut behind), async {
        let unseen = end_blockers(&mut blind, id).await.unwrap();
        assert!(matches!(unseen[0].end, BlockerEnd::Unseen(_)), "{unseen:?}");
        assert!(unseen[0].to_string().contains("GRANT PROCESS"), "{}", unseen[0]);
        let denied = end_those_in_front_of(&mut seeing, id).await;
        assert!(matches!(denied[0].end, BlockerEnd::Denied(_)), "{denied:?}");
        assert!(denied[0].to_string().contains("CONNECTION ADMIN"), "{}", denied[0]);
        holder.rollback().await.unwrap();
    });
}

/// Goal: a blocker is one line for people in every form. Method: made-up ones.
#[test]
fn a_blocker_is_one_line_for_people() {
    let blocker = |connection_id, end| Blocker {
        connection_id,
        user: "u@h".to_owned(),
        command: "Sleep".to_owned(),
        open_for: Some(Duration::from_secs(12)),
        end,
    };
    let shown = blocker(7, BlockerEnd::Gone).to_string();
    assert_eq!(shown, "connection 7 of \"u@h\" (Sleep, its transaction open for 12 s), gone by itself");
    assert!(blocker(0, BlockerEnd::NotOurs).to_string().contains("XA RECOVER"));
}
