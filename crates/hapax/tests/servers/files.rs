//! Files that are no JSON lines, into a live server.

use super::{Server, Shop, on_every_server};
use crate::world::FORGIVING;

on_every_server! { csv_into_a_json_column_is_parsed_or_a_letter }

/// Goal: CSV into a column for JSON is parsed, or a letter; never a string that nobody wrote. Method: values of every
/// kind, and texts that are no JSON; each row is compared with the value it must hold.
fn csv_into_a_json_column_is_parsed_or_a_letter<S: Server>() {
    let shop = Shop::<S>::ready("", FORGIVING);
    shop.sql("ALTER TABLE orders ADD COLUMN doc json");
    shop.reconfigure("orders.jsonl", "orders.csv");
    shop.world.write(
        "orders.csv",
        "id,doc\n1,12\n2,\"{\"\"a\"\":\"\n3,\"{\"\"a\"\": 1}\"\n4,\"\"\"12\"\"\"\n5,abc\n6,\n7,true\n8,007\n",
    );
    shop.hapax(&["run", "--once"]).exits(0);
    let rows = S::in_one_line(
        "concat(id, '=', CASE WHEN doc IS NULL THEN 'NULL' ELSE replace(concat(doc), ' ', '') END)",
        "id",
    );
    assert_eq!(shop.ask(&format!("SELECT {rows} FROM orders")), "1=12 3={\"a\":1} 4=\"12\" 6=NULL 7=true");
    shop.accounts_for(8, 3);
    let causes = shop.causes();
    let json = |code: &str, example: &str| code == "HX2020" && example.contains("takes JSON text");
    assert!(causes.iter().all(|(code, _, example)| json(code, example)), "{causes:?}");
}
