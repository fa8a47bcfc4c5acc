//! Where our answers may differ from Apache Kafka's, and why. What is not here and differs is a bug of ours.

/// One agreed difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// The start of the question's label; empty for every question.
    pub api: &'static str,
    /// The end of the field's path, or a part of it between dots.
    pub path: &'static str,
    /// Why.
    pub why: &'static str,
}

impl Agreed {
    /// Whether a field of an answer is meant.
    #[must_use]
    pub fn covers(&self, label: &str, path: &str) -> bool {
        let parts = || path.split('.').map(|part| part.split('[').next().unwrap_or(part));
        label.starts_with(self.api) && (path.ends_with(self.path) || parts().any(|part| part == self.path))
    }
}

/// All of them.
pub const AGREED: &[Agreed] = &[
    Agreed { api: "", path: "port", why: "each broker's own address" },
    Agreed { api: "", path: "cluster_id", why: "each cluster's own id" },
    Agreed {
        api: "Metadata 9: a topic that is made by asking",
        path: "topics",
        why: "a topic that Metadata makes is led when we answer; Kafka says 3 and has it a moment later",
    },
    Agreed {
        api: "CreateTopics 7: only a look",
        path: "topic_id",
        why: "Kafka invents an id for a topic that it does not make",
    },
    Agreed {
        api: "IncrementalAlterConfigs 0: an unknown operation",
        path: "",
        why: "Kafka fails with −1; we say 42 and why",
    },
    Agreed {
        api: "IncrementalAlterConfigs 1: an unknown operation",
        path: "",
        why: "Kafka fails with −1; we say 42 and why",
    },
    Agreed {
        api: "CreatePartitions",
        path: "error_message",
        why: "we say that the topic is unknown where Kafka is silent",
    },
    Agreed {
        api: "DescribeConfigs",
        path: "configs[21].config_source",
        why: "Kafka sets min.insync.replicas for the whole cluster when it is formatted; here it has no effect",
    },
    Agreed { api: "Produce", path: "log_start_offset", why: "we tell the log's start only of what was appended" },
    Agreed { api: "Produce", path: "record_errors", why: "the code and the message say what is wrong with a batch" },
    Agreed { api: "Produce", path: "error_message", why: "we say what is wrong with a batch where Kafka is silent" },
];

/// What differs on PostgreSQL besides.
pub const ON_POSTGRES: &[Agreed] = &[
    Agreed { api: "DescribeConfigs", path: "configs[1].value", why: UNCOMPRESSED },
    Agreed { api: "DescribeConfigs", path: "configs[1].config_source", why: UNCOMPRESSED },
    Agreed { api: "DescribeConfigs", path: "configs[3].value", why: UNCOMPRESSED },
    Agreed { api: "DescribeConfigs", path: "configs[3].config_source", why: UNCOMPRESSED },
];

const UNCOMPRESSED: &str = "compression.type is uncompressed there, so that SQL can read the records";
