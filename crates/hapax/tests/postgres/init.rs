//! `hapax init` against a live server: what it writes passes `check --live` and runs; the password is not in it.

use super::world::Shop;

/// Goal: the file runs, and the password stays outside. Method: a table with types, a user with a password.
#[test]
fn a_configuration_for_postgres_runs_and_hides_the_password() {
    let shop = Shop::empty();
    shop.sql("CREATE SCHEMA sales; CREATE TABLE sales.orders (id bigint PRIMARY KEY, customer text NOT NULL, paid boolean, made date, at timestamptz DEFAULT now())");
    shop.world.write("orders.csv", "id,customer,paid,made,Extra\n1,ann,t,2026-11-16,x\n2,bob,f,,y\n");
    let url = shop.url().replacen('@', ":secret@", 1);
    let answer = shop.hapax(&["init", "--from", "orders.csv", "--to", &url, "--table", "sales.orders"]);
    answer.exits(0).says(&["primary key id", "export DATABASE_URL"]).keeps_silent_about(&["secret"]);
    let text = shop.world.read("hapax.yaml");
    assert!(
        !text.contains("secret") && text.contains("url: \"${DATABASE_URL}\"") && text.contains("keyFields: [id]"),
        "{text}"
    );
    assert!(text.contains("Column at has no field: left to the database"), "{text}");
    let variables = [("DATABASE_URL", url.as_str())];
    shop.world.hapax_with(&["check"], &variables).exits(0);
    shop.world.hapax_with(&["setup", "--yes"], &variables).exits(0);
    shop.world.hapax_with(&["check", "--live"], &variables).exits(0).says(&["exactly-once"]);
    shop.world.hapax_with(&["run", "--once"], &variables).exits(0);
    assert_eq!(
        shop.ask(
            "SELECT string_agg(id || customer || paid || coalesce(made::text, '-'), ' ' ORDER BY id) FROM sales.orders"
        ),
        "1anntrue2026-11-16 2bobfalse-"
    );
}
