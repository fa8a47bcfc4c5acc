//! `docs/KAFKA_PROTOCOL_COVERAGE.md`, written from the router; the test keeps the two equal.

use std::fmt::Write;

use kafka_protocol::messages::ApiKey;

use super::ROUTES;

/// What every API is for; those without a word here are not served.
const USES: &[(&str, &str)] = &[
    ("Core", "Produce Fetch ListOffsets Metadata FindCoordinator ApiVersions InitProducerId OffsetForLeaderEpoch"),
    (
        "Groups",
        "OffsetCommit OffsetFetch JoinGroup Heartbeat LeaveGroup SyncGroup DescribeGroups ListGroups DeleteGroups \
         OffsetDelete",
    ),
    (
        "Administration",
        "CreateTopics DeleteTopics DeleteRecords CreatePartitions DescribeConfigs AlterConfigs IncrementalAlterConfigs \
         DescribeCluster DescribeTopicPartitions DescribeLogDirs ListConfigResources",
    ),
    (
        "Answered without doing anything",
        "DescribeAcls CreateAcls DeleteAcls ElectLeaders ListPartitionReassignments DescribeClientQuotas",
    ),
];

/// Not served now, and why.
const ABSENT: &[(&str, &str)] = &[
    (
        "AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit WriteTxnMarkers DescribeProducers DescribeTransactions \
         ListTransactions",
        "transactions are the next step",
    ),
    (
        "ConsumerGroupHeartbeat ConsumerGroupDescribe",
        "the newer group protocol is a later step; clients use the classic one",
    ),
    (
        "SaslHandshake SaslAuthenticate DescribeUserScramCredentials AlterUserScramCredentials CreateDelegationToken \
         RenewDelegationToken ExpireDelegationToken DescribeDelegationToken",
        "there is no authentication yet, so the broker listens on loopback only",
    ),
    ("GetTelemetrySubscriptions PushTelemetry", "clients keep their metrics to themselves"),
    ("AlterClientQuotas", "there are no quotas"),
    (
        "AlterReplicaLogDirs AlterPartitionReassignments DescribeQuorum UpdateFeatures UnregisterBroker",
        "the store keeps the log: there are no replicas, directories or quorum to move",
    ),
    (
        "ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge DescribeShareGroupOffsets \
         AlterShareGroupOffsets DeleteShareGroupOffsets",
        "share groups are not planned",
    ),
];

const HEAD: &str = "\
# Kafka protocol coverage

What `hapax broker` serves of Kafka's protocol. This page is written from the broker's router (`HAPAX_BLESS=1 cargo test -p
hapax-broker coverage_page` renews it), so it cannot say anything else than the program does. Where an answer differs from
Apache Kafka's, [PROTOCOL_DEVIATIONS.md](PROTOCOL_DEVIATIONS.md) says so.

A request of an API or version that is not here closes its connection, with a line in the log; clients learn by ApiVersions
what they may send, and do not. ApiVersions itself is answered in every version: with error 35 where it is unknown.
";

const IDEMPOTENCE: &str = "
## Idempotent producers

`enable.idempotence=true` works with every client, and so do its guarantees: `InitProducerId` gives out producer ids that
nobody else ever gets, and the broker remembers the last five batches of every producer in every partition.

- A batch that comes again, with the same epoch and the same sequences as one of those five, is answered with the offset and
  the time of the first; it is not written twice.
- Any other batch that does not follow the last one: 45 `OUT_OF_ORDER_SEQUENCE_NUMBER`. Sequences go on at 0 after 2³¹ − 1.
- An older epoch: 47 `INVALID_PRODUCER_EPOCH`. A newer epoch begins at sequence 0.
- A producer of which nothing is known may begin anywhere: its state was forgotten after a day without a write.
- The memory survives `kill -9`, a restart, the take-over by another broker, and retention. A topic made anew under an old name
  inherits nothing.
- A transactional id is refused with 53 `TRANSACTIONAL_ID_AUTHORIZATION_FAILED`, which clients say at once, and transactional
  batches with 48, until transactions are served.
- Producers without idempotence (producer id -1) are not checked.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let (served, all) = (ROUTES.len(), served_and_absent());
    writeln!(page, "\nServed: {served} APIs of {all} that Kafka has for clients.").expect("text grows");
    for (use_, names) in USES {
        writeln!(page, "\n## {use_}\n\n| API | key | versions served | advertised |\n|---|--:|---|---|")
            .expect("text grows");
        for name in names.split_whitespace() {
            let route =
                ROUTES.iter().find(|route| route.name == name).unwrap_or_else(|| panic!("{name} is not served"));
            let range = |min: i16, max: i16| if min == max { min.to_string() } else { format!("{min}–{max}") };
            let (served, told) = (range(route.min, route.max), range(route.advertised_min, route.max));
            let key = route.key as i16;
            writeln!(page, "| {name} | {key} | {served} | {told} |").expect("text grows");
        }
    }
    page.push_str("\nProduce is advertised from 0 because librdkafka drops gzip, snappy and lz4 otherwise; nobody sends 0 to 2.\n");
    page.push_str(IDEMPOTENCE);
    page.push_str("\n## Not served\n\n| API | why |\n|---|---|\n");
    for (names, why) in ABSENT {
        let names: Vec<&str> = names.split_whitespace().collect();
        writeln!(page, "| {} | {why} |", names.join(", ")).expect("text grows");
    }
    page
}

fn served_and_absent() -> usize {
    let absent: usize = ABSENT.iter().map(|(names, _)| names.split_whitespace().count()).sum();
    ROUTES.len() + absent
}

/// Goal: the page tells what the router does, all of it. Method: compare; `HAPAX_BLESS=1` writes it.
#[test]
fn the_coverage_page_is_what_the_router_serves() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/KAFKA_PROTOCOL_COVERAGE.md");
    let page = page();
    for route in ROUTES {
        assert!(page.contains(&format!("| {} | {} |", route.name, route.key as i16)), "{} has no use", route.name);
        assert!(!ABSENT.iter().any(|(names, _)| names.split_whitespace().any(|name| name == route.name)));
    }
    if std::env::var_os("HAPAX_BLESS").is_some() {
        std::fs::write(file, &page).expect("writes the page");
    }
    let written = std::fs::read_to_string(file).unwrap_or_default();
    assert!(written == page, "the page is out of date: HAPAX_BLESS=1 cargo test -p hapax-broker coverage_page");
}

/// Goal: the table is in order and says nothing twice, and no version is claimed that the codec has not. Method: look.
#[test]
fn the_routes_are_sorted_and_within_the_codec() {
    assert!(ROUTES.is_sorted_by(|one, next| (one.key as i16) < next.key as i16));
    for route in ROUTES {
        let codec = ApiKey::valid_versions(&route.key);
        assert!(codec.min <= route.min && route.max <= codec.max, "{} {codec}", route.name);
        assert!(route.advertised_min <= route.min);
    }
}
