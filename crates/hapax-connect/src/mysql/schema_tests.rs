use super::super::column::{Longest, Sign};
use super::super::sample::{Place, run};
use super::*;
use crate::table::column::LiveColumn as _;

async fn table(session: &mut Session, name: &str) -> MysqlTable {
    match read(session, &name.parse().unwrap()).await.unwrap() {
        Found::Table(table) => *table,
        other @ (Found::Nothing | Found::Other(_)) => panic!("{other:?}"),
    }
}

/// Goal: a declared type means to us what it is. Method: a table of all of them.
#[tokio::test]
async fn types_are_known_by_what_they_are() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    run(
        &mut session,
        "CREATE TABLE t (a boolean, b smallint unsigned, c mediumint, d int zerofill, e bigint, f decimal(10,2) unsigned, \
         g float, h double(7,3), i bit(9), j year, k char(3), l varchar(9), m tinytext, n text CHARACTER SET latin1, \
         o binary(4), p varbinary(5), q mediumblob, r date, s time(2), u datetime, v timestamp(6) NULL, w enum('x','y'), \
         x set('p','q'), y json, z uuid, aa inet6, bb geometry)",
    )
    .await;
    let table = table(&mut session, "t").await;
    let kinds: Vec<Kind> = table.live.columns.iter().map(|column| column.kind).collect();
    let (signed, unsigned) = (Sign::Signed, Sign::Unsigned);
    let expected = [
        Kind::Int { bits: 8, sign: signed },
        Kind::Int { bits: 16, sign: unsigned },
        Kind::Int { bits: 24, sign: signed },
        Kind::Int { bits: 32, sign: unsigned },
        Kind::Int { bits: 64, sign: signed },
        Kind::Decimal { precision: 10, scale: 2, sign: unsigned },
        Kind::Float { scale: None, sign: signed },
        Kind::Double { scale: Some(3), sign: signed },
        Kind::Bit { bits: 9 },
        Kind::Year,
        Kind::Char { most: 3 },
        Kind::Text { most: Longest::Characters(9) },
        Kind::Text { most: Longest::Bytes(255) },
        Kind::Text { most: Longest::ServerJudges },
        Kind::Binary { length: 4 },
        Kind::Bytes { most: 5 },
        Kind::Bytes { most: 16_777_215 },
        Kind::Date,
        Kind::Time { digits: 2 },
        Kind::Datetime { digits: 0 },
        Kind::Timestamp { digits: 6 },
        Kind::Enum,
        Kind::Set,
        Kind::Json,
        Kind::Uuid,
        Kind::Other,
        Kind::Other,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(table.live.column("W").unwrap().members, ["x", "y"]);
}

/// Goal: names, keys, defaults, generated columns and flaws are read as they are. Method: names that want to be more
/// than names, in another database.
#[tokio::test]
async fn a_table_is_read_whatever_it_is_called() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    let other = format!("{} x", place.name());
    run(
        &mut session,
        &format!(
            "CREATE DATABASE `{other}`; CREATE TABLE `{other}`.`order by` (`order by` int NOT NULL, `a``b` varchar(99) NOT \
             NULL DEFAULT 'x', c bigint AUTO_INCREMENT, d int AS (c + 1), e timestamp NOT NULL DEFAULT \
             current_timestamp(), f int, PRIMARY KEY (`order by`, `a``b`), UNIQUE KEY pre (`a``b`(5)), UNIQUE (c)) \
             COMMENT='x AUTO_INCREMENT=7 y'; CREATE TRIGGER `{other}`.no BEFORE INSERT ON `{other}`.`order by` FOR EACH ROW \
             SET NEW.f = 1"
        ),
    )
    .await;
    let found = table(&mut session, &format!("`{other}`.`order by`")).await;
    let names: Vec<&str> = found.live.columns.iter().map(|column| column.name()).collect();
    assert_eq!(names, ["order by", "a`b", "c", "e", "f"], "d is generated");
    let filled: Vec<bool> = found.live.columns.iter().map(|column| column.fills_itself).collect();
    assert_eq!(filled, [false, true, true, true, false]);
    assert_eq!(found.live.primary_key, ["order by", "a`b"]);
    let flaws: Vec<(&str, bool)> =
        found.live.unique.iter().map(|index| (index.name.as_str(), index.flaw.is_some())).collect();
    assert_eq!(flaws, [("PRIMARY", false), ("c", false), ("pre", true)]);
    assert_eq!((found.numbered, found.triggers), (vec!["c".to_owned()], vec!["no".to_owned()]));
    assert_eq!((found.engine.as_str(), found.lacks), ("InnoDB", Vec::new()));
    let before = found.version;
    run(&mut session, &format!("INSERT INTO `{other}`.`order by` (`order by`, `a``b`) VALUES (1, 'p'), (2, 'q')"))
        .await;
    let version = table(&mut session, &format!("`{other}`.`order by`")).await.version;
    assert_eq!(version, before, "rows change no definition");
    run(&mut session, &format!("DROP DATABASE `{other}`")).await;
}

/// Goal: the counter is taken out of a definition, and nothing else. Method: comments and names that look like it.
#[test]
fn only_the_counter_is_left_out() {
    let of = |options: &str| {
        without_counter(&format!("CREATE TABLE `t` (\n  `a` int COMMENT ' ENGINE=x AUTO_INCREMENT=1'\n) {options}"))
    };
    assert_eq!(of("ENGINE=InnoDB AUTO_INCREMENT=12 COMMENT='z'"), of("ENGINE=InnoDB COMMENT='z'"));
    assert_eq!(of("/* x */ ENGINE=InnoDB AUTO_INCREMENT=12"), of("/* x */ ENGINE=InnoDB"));
    let comment = "ENGINE=InnoDB COMMENT=' ENGINE=y AUTO_INCREMENT=2'";
    assert!(of(comment).ends_with(comment));
}

/// Goal: what is no table is told apart. Method: a view, a sequence, nothing.
#[tokio::test]
async fn what_is_no_table_is_told_apart() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    run(&mut session, "CREATE VIEW v AS SELECT 1 AS id; CREATE SEQUENCE s").await;
    for (name, expected) in [("v", Found::Other("a view")), ("s", Found::Other("a sequence")), ("n", Found::Nothing)] {
        assert_eq!(read(&mut session, &name.parse().unwrap()).await.unwrap(), expected, "{name}");
    }
}
