//! Rules that look at several fields at once.
//!
//! Reads: the effective configuration, which may have holes where problems were found. Writes: problems, warnings.
//! Not here: what one field may hold (`schema`), whether a promise can be kept (the audit).

use std::collections::HashMap;

use hapax_connect::file::many;
use hapax_model::delivery::Delivery;
use hapax_model::nearest::nearest;

use super::build::{build_delivery, is_csv};
use super::node::{Origin, quoted};
use super::problem::{Place, Problem, Problems, code};
use super::program;
use super::value::{Held, Value};

/// Checks the whole configuration.
pub(crate) fn check_rules(effective: &Value, problems: &mut Problems, warnings: &mut Problems) {
    check_state(effective, problems);
    check_http(effective, problems);
    check_alerts(effective, problems);
    check_broker(effective, problems, warnings);
    check_tests(effective, problems);
    let workflows = effective.get("workflows").map_or(&[][..], Value::items);
    let mut ids: HashMap<&str, &Place> = HashMap::new();
    for workflow in workflows {
        if let Some(id) = workflow.get("id") {
            check_unique(&mut ids, id, code::DUPLICATE_WORKFLOW, "workflow", problems);
        }
        check_sinks(workflow, effective, problems, warnings);
        check_source(workflow, effective, problems);
        check_delivery(workflow, problems, warnings);
        program::check_transform(workflow, problems);
    }
}

/// A test runs one workflow that is there, and a sink that it has.
fn check_tests(effective: &Value, problems: &mut Problems) {
    let workflows = effective.get("workflows").map_or(&[][..], Value::items);
    for test in effective.get("tests").map_or(&[][..], Value::items) {
        let Some(named) = test.get("workflow") else { continue };
        let known = workflows.iter().filter_map(|workflow| workflow.get("id").and_then(Value::text));
        let Some(workflow) = workflows.iter().find(|workflow| workflow.get("id").and_then(Value::text) == named.text())
        else {
            problems.add(unknown_in_test(named, "workflow", known));
            continue;
        };
        let Some(sink) = test.get("sink") else { continue };
        let single = workflow.get("sink").and_then(kind_of);
        let several = workflow.get("sinks").map_or(&[][..], Value::items).iter();
        let names: Vec<&str> =
            single.into_iter().chain(several.filter_map(|it| it.get("name").and_then(Value::text))).collect();
        if sink.text().is_some_and(|name| !names.contains(&name)) {
            problems.add(unknown_in_test(sink, "sink of this workflow", names.into_iter()));
        }
    }
}

/// What a single `sink:` is called: the kind that is written in it.
fn kind_of(sink: &Value) -> Option<&'static str> {
    let Held::Object(fields) = &sink.held else { return None };
    fields.first().map(|(name, _)| *name)
}

fn unknown_in_test<'a>(named: &Value, what: &str, known: impl Iterator<Item = &'a str> + Clone) -> Problem {
    let name = named.text().unwrap_or_default();
    let cure = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    };
    Problem::new(&named.place, code::UNKNOWN_IN_TEST, format!("{} is no {what}", quoted(name)), cure)
}

/// Whether a person wrote this value.
fn written(value: &Value) -> bool {
    value.place.line > 0
}

fn check_unique<'a>(
    seen: &mut HashMap<&'a str, &'a Place>,
    name: &'a Value,
    code: &'static str,
    what: &str,
    problems: &mut Problems,
) {
    let Some(text) = name.text() else { return };
    match seen.insert(text, &name.place) {
        None => {}
        Some(first) => {
            let shown = match name.origin {
                Origin::File => quoted(text),
                Origin::Variable => "of a variable".into(),
            };
            let message = format!("the {what} {shown} is already at {first}");
            let cure = format!("give each {what} a name of its own");
            problems.add(Problem::new(&name.place, code, message, cure));
            seen.insert(text, first);
        }
    }
}

fn check_state(effective: &Value, problems: &mut Problems) {
    let Some(state) = effective.get("state") else { return };
    if state.text().is_some_and(|url| url.starts_with("postgres")) {
        check_postgres_url(state, "state", problems);
    }
}

/// Reads the URL with the connector's own words, which never quote it.
#[cfg(feature = "postgres")]
pub(super) fn check_postgres_url(url: &Value, name: &str, problems: &mut Problems) {
    use hapax_sql::postgres::PostgresUrl;
    if let Some(Err(error)) = url.text().map(str::parse::<PostgresUrl>) {
        let cure = "write postgres://user:password@host:port/database?sslmode=…, the password best as ${NAME}";
        problems.add(Problem::new(&url.place, error.code(), format!("\"{name}\": {error}"), cure));
    }
}

#[cfg(not(feature = "postgres"))]
pub(super) fn check_postgres_url(url: &Value, name: &str, problems: &mut Problems) {
    problems.add(left_out(&url.place, name, "PostgreSQL", "postgres"));
}

/// Built for one system or another: what is left out is said, not guessed at.
#[cfg(not(all(feature = "mysql", feature = "postgres")))]
fn left_out(place: &Place, name: &str, system: &str, feature: &str) -> Problem {
    let message = format!("\"{name}\" names {system}, and this edition has no {system}");
    let cure = format!("build with --features {feature}, or write another kind");
    Problem::new(place, code::NOT_IN_EDITION, message, cure)
}

/// What other machines can reach is not left open to all of them.
fn check_http(effective: &Value, problems: &mut Problems) {
    let (Some(listen), None) = (effective.at("http.listen"), effective.at("http.token")) else { return };
    let Some(address) = listen.text().and_then(|text| text.parse::<std::net::SocketAddr>().ok()) else { return };
    if !address.ip().is_loopback() {
        let message = format!("other machines can reach {address}, and there is no token");
        let cure = "write token: \"${HAPAX_HTTP_TOKEN}\" beside it, or listen on 127.0.0.1";
        problems.add(Problem::new(&listen.place, code::OPEN_TO_ALL, message, cure));
    }
}

#[cfg(feature = "broker")]
fn check_broker(effective: &Value, problems: &mut Problems, warnings: &mut Problems) {
    super::broker::check(effective, problems, warnings);
}

#[cfg(not(feature = "broker"))]
fn check_broker(effective: &Value, problems: &mut Problems, _: &mut Problems) {
    if let Some(broker) = effective.get("broker") {
        let cure = "build with --features broker, or remove it";
        problems.add(Problem::new(&broker.place, code::NOT_IN_EDITION, "this edition has no broker", cure));
    }
}

fn check_alerts(effective: &Value, problems: &mut Problems) {
    if let Some(webhook) = effective.at("alerts.webhook").filter(|_| !cfg!(feature = "http")) {
        let message = "this build has no outgoing HTTP, so nobody would be called";
        let cure = "build with the feature http, or remove alerts";
        problems.add(Problem::new(&webhook.place, code::NO_HTTP, message, cure));
    }
}

fn check_sinks(workflow: &Value, effective: &Value, problems: &mut Problems, warnings: &mut Problems) {
    let (single, several) = (workflow.get("sink"), workflow.get("sinks"));
    if let (Some(_), Some(several)) = (single, several) {
        let message = "the workflow has both sink and sinks";
        let cure = "keep sinks, and give what is under sink a name there";
        problems.add(Problem::new(&several.place, code::CONTRADICTION, message, cure));
    }
    let several = several.map_or(&[][..], Value::items);
    let mut names = HashMap::new();
    for name in several.iter().filter_map(|sink| sink.get("name")) {
        check_unique(&mut names, name, code::DUPLICATE_SINK, "sink", problems);
    }
    for sink in single.into_iter().chain(several) {
        if let Some(sqlite) = sink.get("sqlite") {
            check_table(sqlite, problems);
        }
        if let Some(postgres) = sink.get("postgres") {
            check_postgres(postgres, problems);
        }
        if let Some(mysql) = sink.get("mysql") {
            check_mysql(mysql, problems);
        }
        for table in ["sqlite", "postgres", "mysql"].into_iter().filter_map(|kind| sink.get(kind)) {
            check_modes(table, problems);
            check_progress(table, effective, problems, warnings);
        }
    }
}

#[cfg(not(feature = "postgres"))]
fn check_postgres(postgres: &Value, problems: &mut Problems) {
    problems.add(left_out(&postgres.place, "sink", "PostgreSQL", "postgres"));
}

#[cfg(not(feature = "mysql"))]
fn check_mysql(mysql: &Value, problems: &mut Problems) {
    problems.add(left_out(&mysql.place, "sink", "MySQL", "mysql"));
}

/// The URL, which must name a database because our tables lie in it, and the table's name.
#[cfg(feature = "mysql")]
fn check_mysql(mysql: &Value, problems: &mut Problems) {
    use hapax_sql::mysql::{MysqlUrl, TableName};
    let cure = "write mysql://user:password@host:port/database?ssl-mode=…, the password best as ${NAME}";
    if let Some(url) = mysql.get("url") {
        match url.text().map(MysqlUrl::parse) {
            Some(Err(error)) => problems.add(Problem::new(&url.place, error.code(), format!("\"url\": {error}"), cure)),
            Some(Ok(parsed)) if parsed.database().is_none() => {
                let message = "\"url\" names no database";
                problems.add(Problem::new(&url.place, code::NO_DATABASE, message, cure));
            }
            Some(Ok(_)) | None => {}
        }
    }
    let Some(table) = mysql.get("table") else { return };
    match table.text().map(str::parse::<TableName>) {
        Some(Err(error)) => {
            let cure = "write table or database.table, with a name that holds a point in backticks";
            problems.add(Problem::new(&table.place, code::MALFORMED, format!("\"table\": {error}"), cure));
        }
        Some(Ok(name)) => refuse_ours(table, name.table(), problems),
        None => {}
    }
}

/// The URL, and the table's name, of which our own schema has no part.
#[cfg(feature = "postgres")]
fn check_postgres(postgres: &Value, problems: &mut Problems) {
    use hapax_sql::postgres::TableName;
    if let Some(url) = postgres.get("url") {
        check_postgres_url(url, "url", problems);
    }
    let Some(table) = postgres.get("table") else { return };
    match table.text().map(str::parse::<TableName>) {
        Some(Err(error)) => {
            let cure = "write table or schema.table, with a name that holds a point in double quotes";
            problems.add(Problem::new(&table.place, code::MALFORMED, format!("\"table\": {error}"), cure));
        }
        Some(Ok(name)) if name.schema() == Some("hapax") => {
            let message = "the schema hapax is Hapax's own";
            problems.add(Problem::new(&table.place, code::CONTRADICTION, message, "name a table of yours"));
        }
        Some(Ok(_)) | None => {}
    }
}

/// Our own tables lie beside the user's: nobody delivers into them.
fn check_table(sqlite: &Value, problems: &mut Problems) {
    let Some(table) = sqlite.get("table") else { return };
    refuse_ours(table, table.text().unwrap_or_default(), problems);
}

fn refuse_ours(table: &Value, name: &str, problems: &mut Problems) {
    if name.to_ascii_lowercase().starts_with("hapax_") {
        let message = "tables whose names begin with hapax_ are Hapax's own";
        problems.add(Problem::new(&table.place, code::CONTRADICTION, message, "name a table of yours"));
    }
}

/// Fields of a SQL sink that only some conflict modes have a use for.
fn check_modes(sink: &Value, problems: &mut Problems) {
    let mode = sink.get("onConflict").and_then(Value::text);
    let needs: [(&str, &[Option<&str>], &str); 3] = [
        ("versionColumn", &[Some("newer")], "only onConflict: newer compares versions; write that, or remove it"),
        (
            "keyColumn",
            &[None, Some("ignore"), Some("update"), Some("newer")],
            "onConflict: append looks at no key; choose another mode, or remove it",
        ),
        (
            "deleteWhen",
            &[None, Some("update"), Some("newer")],
            "only onConflict: update and newer can delete; choose one of them, or remove it",
        ),
    ];
    for (name, modes, cure) in needs {
        if let Some(field) = sink.get(name).filter(|_| !modes.contains(&mode)) {
            let message = match mode {
                Some(mode) => format!("\"{name}\" has no meaning with onConflict: {mode}"),
                None => format!("\"{name}\" has no meaning without onConflict"),
            };
            problems.add(Problem::new(&field.place, code::CONTRADICTION, message, cure));
        }
    }
}

fn check_progress(sink: &Value, effective: &Value, problems: &mut Problems, warnings: &mut Problems) {
    let Some(progress) = sink.get("progress") else { return };
    let in_state = progress.text() == Some("state");
    if in_state && effective.get("state").and_then(Value::text) == Some("none") {
        let message = "progress: state needs a state store, and state is none";
        let cure = "write progress: sink, or state: \"sqlite://hapax-data/state.db\"";
        problems.add(Problem::new(&progress.place, code::CONTRADICTION, message, cure));
    }
    if let Some(interval) = sink.get("progressInterval").filter(|interval| !in_state && written(interval)) {
        let message = "\"progressInterval\" has no effect: with progress: sink every commit saves the position";
        warnings.add(Problem::new(&interval.place, code::NO_EFFECT, message, "remove it"));
    }
}

fn check_source(workflow: &Value, effective: &Value, problems: &mut Problems) {
    let memory = effective.get("memory").and_then(Value::size);
    if let (Some(longest), Some(memory)) = (workflow.at("source.file.maxLine"), memory)
        && longest.size().is_some_and(|longest| longest > memory)
    {
        let place = if written(longest) { &longest.place } else { &workflow.place };
        let message = format!("a line of \"maxLine\" would not fit into memory: {memory}");
        problems.add(Problem::new(place, code::CONTRADICTION, message, "lower maxLine, or raise memory"));
    }
    if let Some(file) = workflow.at("source.file") {
        check_file(file, problems);
    }
    let Some(generate) = workflow.at("source.generate") else { return };
    let shares = ["updates", "deletes", "poison"].map(|name| generate.get(name).and_then(Value::share));
    let total: u32 = shares.into_iter().flatten().map(|share| share.per_mille()).sum();
    if total > 1000 {
        let message = "updates, deletes and poison are more than 100% together";
        problems.add(Problem::new(&generate.place, code::CONTRADICTION, message, "lower them"));
    }
}

/// `order: name` makes one chain of the files of one folder, and names alone decide it.
fn check_order(file: &Value, problems: &mut Problems) {
    let (Some(order), Some(path)) = (file.get("order"), file.get("path").and_then(Value::text)) else { return };
    let rotation = file.get("rotation").filter(|rotation| rotation.place != Place::whole(&rotation.place.file));
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (message, cure) = if !many::is_pattern(path) {
        (
            "\"order\" has no meaning: path names one file".to_owned(),
            "write a pattern such as in/batch-*.csv, or remove order",
        )
    } else if many::is_pattern(folder) || path.ends_with("**") {
        let message =
            "order: name makes a chain of the files of one folder, and path has wildcards in the folder's name";
        (message.to_owned(), "name the folder in full, with a workflow for each, or remove order")
    } else if let Some(rotation) = rotation.and_then(Value::text) {
        let message = format!("order: name and rotation: {rotation} would both say which file follows which");
        (message, "remove rotation: the names decide; or remove order")
    } else {
        return;
    };
    problems.add(Problem::new(&order.place, code::CONTRADICTION, message, cure));
}

/// What the path, the format and the words about CSV say together.
fn check_file(file: &Value, problems: &mut Problems) {
    let Some(path) = file.get("path") else { return };
    let pattern = path.text().filter(|text| many::is_pattern(text));
    if let Some(Err(why)) = pattern.map(many::check_pattern) {
        let cure = "write a name in which * and ? stand for anything, [a-z] for one of them, ** for any folders; [*] is a star";
        problems.add(Problem::new(&path.place, code::BAD_PATTERN, format!("\"path\" is no pattern: {why}"), cure));
    }
    if let (Some(_), Some("latest"), Some(start)) =
        (pattern, file.get("start").and_then(Value::text), file.get("start"))
    {
        let message = "start: latest would skip the beginning of every file that appears later";
        problems.add(Problem::new(
            &start.place,
            code::CONTRADICTION,
            message,
            "remove it: files are read from their beginning",
        ));
    }
    check_order(file, problems);
    let Some(csv) = file.get("csv") else { return };
    if !is_csv(file) {
        let message = "\"csv\" has no meaning: the file holds JSON lines";
        problems.add(Problem::new(
            &csv.place,
            code::CONTRADICTION,
            message,
            "write format: csv beside it, or remove csv",
        ));
    }
    let (delimiter, quote) = (csv.get("delimiter"), csv.get("quote"));
    if let (Some(delimiter), Some(quote)) = (delimiter, quote)
        && delimiter.text() == quote.text()
    {
        let message = "\"delimiter\" and \"quote\" are the same character";
        problems.add(Problem::new(
            &delimiter.place,
            code::CONTRADICTION,
            message,
            "change one of them; quote: none has no quotes",
        ));
    }
    let mut seen = HashMap::new();
    for name in csv.get("header").map_or(&[][..], Value::items) {
        check_unique(&mut seen, name, code::CONTRADICTION, "column", problems);
    }
}

fn check_delivery(workflow: &Value, problems: &mut Problems, warnings: &mut Problems) {
    let Some(delivery) = workflow.get("delivery") else { return };
    if let Some(fence) = delivery.get("autoFenceOnStartup") {
        let message = "\"autoFenceOnStartup\" has no effect: an older worker is always fenced";
        warnings.add(Problem::new(&fence.place, code::NO_EFFECT, message, "remove it"));
    }
    for problem in Delivery::from(build_delivery(delivery)).problems() {
        let place = delivery.at(problem.field).filter(|field| written(field)).map_or(&workflow.place, |it| &it.place);
        let message = format!("\"delivery.{}\": {}", problem.field, problem.what);
        problems.add(Problem::new(place, problem.code, message, problem.cure));
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
