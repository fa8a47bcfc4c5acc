use crate::config::tests::{assert_problem, loaded};

fn sink(fields: &str) -> String {
    format!("workflows:\n  - id: w\n    sink:\n      sqlite:\n        path: a.db\n        table: t\n        {fields}\n")
}

/// Goal: ids and sink names are unique. Method: doubles of each, with the first's place in the message.
#[test]
fn doubled_names_are_told_with_both_places() {
    let ids = "workflows:\n  - id: a\n  - id: b\n  - id: a\n";
    assert_problem(ids, 4, "HX1030", &["the workflow \"a\" is already at etc/hapax.yaml:2:9", "a name of its own"]);
    let sinks = "workflows:\n  - id: w\n    sinks:\n      - { name: x, sqlite: { path: a, table: b } }\n      \
                 - { name: x, sqlite: { path: a, table: c } }\n";
    assert_problem(sinks, 5, "HX1031", &["the sink \"x\" is already at etc/hapax.yaml:4:17"]);
}

/// Goal: fields that cannot be true together are refused. Method: each pair.
#[test]
fn contradictions_are_told() {
    assert_problem(&sink("versionColumn: v"), 7, "HX1033", &["without onConflict", "onConflict: newer"]);
    let cases = [
        ("{ onConflict: append, keyColumn: k }", "append looks at no key"),
        ("{ onConflict: append, deleteWhen: .op == 1 }", "only onConflict: update and newer can delete"),
        ("{ onConflict: ignore, deleteWhen: .op == 1 }", "only onConflict: update and newer can delete"),
        ("{ onConflict: update, versionColumn: v }", "onConflict: newer"),
    ];
    for (fields, cure) in cases {
        let fields = fields.replace("{ ", "{ path: a, table: t, ");
        let text = format!("workflows:\n  - id: w\n    sink:\n      sqlite: {fields}\n");
        assert_problem(&text, 4, "HX1033", &["has no meaning", cure]);
    }
    let ours = "workflows:\n  - id: w\n    sink: { sqlite: { path: a, table: Hapax_progress } }\n";
    assert_problem(ours, 3, "HX1033", &["Hapax's own", "name a table of yours"]);
    let both = "workflows:\n  - id: w\n    sink: { sqlite: { path: a, table: b } }\n    sinks:\n      \
                - { name: x, sqlite: { path: a, table: c } }\n";
    assert_problem(both, 5, "HX1033", &["both sink and sinks", "keep sinks"]);
    let stateless = format!("state: none\n{}", sink("progress: state"));
    assert_problem(&stateless, 8, "HX1033", &["needs a state store", "progress: sink"]);
    let line = "memory: 16MiB\nworkflows:\n  - id: w\n    source: { file: { path: a, maxLine: 17MiB } }\n";
    assert_problem(line, 4, "HX1033", &["would not fit into memory: 16MiB", "lower maxLine"]);
    let shares = "workflows:\n  - id: w\n    source: { generate: { updates: 60%, deletes: 40%, poison: 0.1% } }\n";
    assert_problem(shares, 3, "HX1033", &["more than 100%", "lower them"]);
}

/// Goal: what the model finds wrong with a delivery block is told at its place. Method: two such blocks.
#[test]
fn a_senseless_delivery_block_is_told_at_its_place() {
    let unique = "workflows:\n  - id: w\n    delivery:\n      deduplication:\n        unique: true\n";
    assert_problem(unique, 5, "HX1151", &["delivery.deduplication.unique", "keyFields"]);
    let twice = "workflows:\n  - id: w\n    delivery:\n      deduplication: { keyFields: [a, .a] }\n";
    assert_problem(twice, 4, "HX1151", &["names .a twice", "name each field once"]);
}

/// Goal: what has no effect is accepted with a word of warning. Method: both such fields.
#[test]
fn fields_without_effect_are_warned_of() {
    let text = "delivery:\n  autoFenceOnStartup: false\nworkflows:\n  - id: a\n  - id: b\n    sink:\n      \
                sqlite: { path: a, table: b, progressInterval: 5s }\n";
    let loaded = loaded(text);
    let told: Vec<_> = loaded.warnings.iter().map(|it| (it.place.line, it.code, it.cure.as_str())).collect();
    assert_eq!(told, [(2, "HX1050", "remove it"), (7, "HX1050", "remove it")]);
}

/// Goal: metrics are never open to other machines by mistake. Method: addresses with and without a token.
#[test]
fn an_address_for_everybody_needs_a_token() {
    for open in ["0.0.0.0:8077", "[::]:8077", "192.168.1.7:80"] {
        let text = format!("http:\n  listen: \"{open}\"\n");
        assert_problem(&text, 2, "HX1350", &["other machines can reach", "token", "127.0.0.1"]);
        let guarded = loaded(&format!("{text}  token: 0123456789abcdef\n"));
        assert!(!format!("{:?}", guarded.config.http).contains("0123456789"), "a token never prints");
        assert!(!guarded.to_yaml().contains("0123456789"), "{}", guarded.to_yaml());
    }
    let at_home = loaded("http: {}\n").config.http.expect("http");
    assert_eq!((at_home.listen.to_string().as_str(), at_home.token), ("127.0.0.1:8077", None));
    assert_eq!(loaded("memory: 64MiB\n").config.http, None);
    assert_problem("http: { listen: \"localhost:80\" }\n", 1, "HX1016", &["no address with a port"]);
    assert_problem("http: { token: hunter2 }\n", 1, "HX1016", &["easily guessed"]);
}

/// Goal: a webhook is a URL, and a secret. Method: wrong ones, a right one, and what is printed of each.
#[test]
fn a_webhook_is_a_url_and_a_secret() {
    for wrong in ["hunter2", "ftp://hunter2", "https://", "https://me:hunter2@host/", "https://host/hunter2 x"] {
        let text = format!("alerts:\n  webhook: \"{wrong}\"\n");
        assert_problem(&text, 2, "HX1016", &["alerts.webhook"]);
        let problems = format!("{:?}", crate::config::tests::problems_of(&text));
        assert!(!problems.contains("hunter2"), "{problems}");
    }
    if cfg!(feature = "http") {
        let right = loaded("alerts: { webhook: \"https://host/hunter2\" }\n");
        assert!(right.config.webhook.as_ref().is_some_and(|url| url.0.ends_with("hunter2")));
        assert!(!format!("{:?} {} {}", right.config, right.to_yaml(), right.to_json()).contains("hunter2"));
    }
}

/// Goal: an address that MySQL cannot be reached by is told by its place, and its password never; our own tables are
/// nobody's target. Method: wrong addresses and names; right ones.
#[cfg(feature = "mysql")]
#[test]
fn a_mysql_sink_is_checked_and_its_url_never_quoted() {
    let sink = |url: &str, table: &str| {
        format!("workflows:\n  - id: w\n    sink:\n      mysql:\n        url: \"{url}\"\n        table: \"{table}\"\n")
    };
    for wrong in [
        "postgres://me:hunter2@h/d",
        "mysql://me:hunter2@h:port/d",
        "mysql://me:hunter2@h/d?ssl-mode=perhaps",
        "mysql://me@h/d?pasword=hunter2",
        "mysql://me:hunter2@h",
    ] {
        let problems = crate::config::tests::problems_of(&sink(wrong, "orders"));
        assert_eq!(problems.len(), 1, "{wrong}: {problems:?}");
        let told = format!("{problems:?}");
        assert!(told.contains("\\\"url\\\"") && !told.contains("hunter2"), "{told}");
    }
    assert_problem(&sink("mysql://me@h", "orders"), 5, "HX1490", &["names no database", "mysql://user"]);
    for wrong in ["hapax_orders", "shop.hapax_progress", "a.b.c"] {
        let problems = crate::config::tests::problems_of(&sink("mysql://me@h/d", wrong));
        assert_eq!(problems.len(), 1, "{wrong}: {problems:?}");
    }
    let right = loaded(&sink("mariadb://me:hunter2@h/d", "sales.orders"));
    assert!(!format!("{:?} {} {}", right.config, right.to_yaml(), right.to_json()).contains("hunter2"));
    assert_problem("state: mysql://me:hunter2@h/d\n", 1, "HX1016", &["is no state store"]);
}

/// Goal: an address that PostgreSQL cannot be reached by is told by its place, and its password never.
/// Method: wrong addresses, as sink and as state store; right ones.
#[cfg(feature = "postgres")]
#[test]
fn a_database_url_is_checked_and_never_quoted() {
    let sink = |url: &str| {
        format!("workflows:\n  - id: w\n    sink:\n      postgres:\n        url: \"{url}\"\n        table: orders\n")
    };
    for wrong in [
        "mysql://me:hunter2@h/d",
        "postgres://me:hunter2@h:port/d",
        "postgres://me:hunt/er2@h/d",
        "hunter2",
        "postgres://me:hunter2@h/d?sslmode=perhaps",
        "postgres://h/d?pasword=hunter2",
    ] {
        assert_problem(&sink(wrong), 5, "HX4200", &["\"url\"", "postgres://user"]);
        let told = format!("{:?}", crate::config::tests::problems_of(&sink(wrong)));
        assert!(!told.contains("hunter2") && !told.contains("er2"), "{told}");
    }
    assert_problem("state: postgres://me:hunter2@h:port/d\n", 1, "HX4200", &["\"state\""]);
    let right =
        loaded(&format!("state: postgres://me:hunter2@h/d\n{}", sink("postgres://me:hunter2@h/d?password=hunter2")));
    assert!(!format!("{:?} {} {}", right.config, right.to_yaml(), right.to_json()).contains("hunter2"));
    assert_eq!(right.config.workflows[0].sinks[0].name, "postgres");
}

/// Goal: a table of PostgreSQL may have a schema, but not ours, and a name that PostgreSQL can keep. Method: each.
#[cfg(feature = "postgres")]
#[test]
fn a_table_of_postgres_has_a_name_of_its_own() {
    let text = |table: &str| {
        format!(
            "workflows:\n  - id: w\n    sink:\n      postgres:\n        url: postgres://h/d\n        table: '{table}'\n"
        )
    };
    assert_problem(&text("hapax.progress"), 6, "HX1033", &["Hapax's own"]);
    assert_problem(&text("a.b.c"), 6, "HX1016", &["schema.table"]);
    for table in ["orders", "shop.orders", "shop.\"odd.name\""] {
        assert_eq!(loaded(&text(table)).config.workflows[0].sinks[0].target.table().name, table);
    }
}

/// Goal: an edition without PostgreSQL says so. Method: a sink and a state store.
#[cfg(not(feature = "postgres"))]
#[test]
fn an_edition_without_postgres_says_so() {
    let sink = "workflows:\n  - id: w\n    sink:\n      postgres: { url: postgres://h/d, table: t }\n";
    assert_problem(sink, 4, "HX1300", &["this edition has no PostgreSQL", "--features postgres"]);
    assert_problem("state: postgres://h/d\n", 1, "HX1300", &["this edition has no PostgreSQL"]);
}

/// Goal: alerts are taken by a build that can call, and refused by one that cannot. Method: the same text in either.
#[test]
fn alerts_need_a_build_that_can_call() {
    let text = "alerts:\n  webhook: https://chat.example/hooks/7\n";
    if cfg!(feature = "http") {
        assert!(loaded(text).config.webhook.is_some());
    } else {
        assert_problem(text, 2, "HX1351", &["no outgoing HTTP", "build with the feature http"]);
    }
}

/// Goal: an edition without the broker says so.
#[cfg(not(feature = "broker"))]
#[test]
fn an_edition_without_the_broker_says_so() {
    assert_problem("broker:\n  partitions: 3\n", 2, "HX1300", &["this edition has no broker", "--features broker"]);
}
