//! MariaDB, which commits every change of a table by itself and swaps tables in one statement.

use super::Place;
use crate::mysql::world::{Mysql, Shop};
use crate::servers::Server as _;
use crate::world::{KEYED, orders, until};

fn shop() -> Shop {
    Place::ready()
}

/// Goal: a new column that nothing can fill stops the worker. Method: ALTER TABLE under a stream of events.
#[test]
fn a_column_that_nothing_fills_is_added() {
    let change = "ALTER TABLE orders ADD COLUMN state varchar(20) NOT NULL";
    let cure = "ALTER TABLE orders ALTER COLUMN state SET DEFAULT 'new'";
    super::a_column_that_nothing_fills_is_added(&shop(), change, cure);
}

/// Goal: events without a value for a column that needs one are dead letters. Method: MODIFY COLUMN under a stream.
#[test]
fn a_column_must_have_a_value() {
    super::a_column_must_have_a_value(&shop(), "ALTER TABLE orders MODIFY COLUMN customer varchar(200) NOT NULL");
}

/// Goal: another table under the name is another target. Method: both renames in one statement.
#[test]
fn the_table_is_swapped() {
    let shop: Shop = Place::ready();
    // The server tells two tables of one definition apart by the second in which each was made.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    shop.sql("CREATE TABLE orders_new LIKE orders");
    super::the_table_is_swapped(&shop, "RENAME TABLE orders TO orders_old, orders_new TO orders");
}

/// Goal: a table that is gone stops the worker. Method: a rename, and back.
#[test]
fn the_table_is_renamed_away() {
    super::the_table_is_renamed_away(&shop(), 1, &["HX4011", "orders_old"]);
}

/// Goal: wider columns take what they refused before. Method: both columns change their type under a stream of events.
#[test]
fn columns_are_widened() {
    super::columns_are_widened::<Mysql>();
}

/// Goal: what the page says of users whom the server does not tell a table's number (no PROCESS): a change under a running
/// worker is followed, the same at rest stops the next start until somebody says that it is the same table. Method: a
/// column is added, at rest and under a worker.
#[test]
fn a_change_at_rest_is_another_table_to_a_user_without_process() {
    let shop = shop();
    let user = format!("few_of_{}", shop.database());
    let (made, ours) = (Mysql::user_made(&user), Mysql::own_granted(&user));
    shop.sql(&format!("{made}; {ours}; GRANT SELECT, INSERT, UPDATE ON orders TO {user}"));
    shop.configure_as(&shop.url_of(&user), "", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(0);
    // The time when a table was made is known by the second.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    shop.sql("ALTER TABLE orders ADD COLUMN at_rest int");
    shop.hapax(&["run", "--once"]).exits(5).says(&["HX4012", "an ALTER TABLE makes it anew too"]);
    shop.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    shop.world.append("orders.jsonl", orders(4..=6));
    let worker = shop.start("worker.log", &["run"]);
    until("the worker has written", || shop.rows() == 6);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    shop.sql("ALTER TABLE orders MODIFY amount decimal(30, 5)");
    shop.world.append("orders.jsonl", orders(7..=9));
    until("it goes on", || shop.rows() == 9);
    worker.terminate();
    worker.ends().exits(0);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(9, 0);
    shop.sql(&Mysql::user_dropped(&user));
}
