//! The first error that an answer carries: what is counted of it.

use kafka_protocol::messages;

/// An answer whose errors can be counted.
pub(crate) trait FirstError {
    /// Kafka's number of the first error in it; 0 if there is none.
    fn first_error(&self) -> i16;
}

fn first(codes: impl IntoIterator<Item = i16>) -> i16 {
    codes.into_iter().find(|code| *code != 0).unwrap_or(0)
}

macro_rules! errors {
    ($($response:ident: $answer:ident => $codes:expr;)*) => {
        $(impl FirstError for messages::$response {
            fn first_error(&self) -> i16 {
                let $answer = self;
                first($codes)
            }
        })*
    };
}

/// One error for the whole answer.
macro_rules! whole {
    ($($response:ident),*) => { errors! { $($response: it => [it.error_code];)* } };
}

/// One error for each of a list.
macro_rules! each {
    ($($response:ident.$list:ident),*) => {
        errors! { $($response: it => it.$list.iter().map(|one| one.error_code);)* }
    };
}

/// One error for each partition of each topic.
macro_rules! each_partition {
    ($($response:ident.$topics:ident.$partitions:ident),*) => {
        errors! { $($response: it =>
            it.$topics.iter().flat_map(|topic| &topic.$partitions).map(|partition| partition.error_code);)* }
    };
}

whole!(
    JoinGroupResponse,
    HeartbeatResponse,
    SyncGroupResponse,
    ListGroupsResponse,
    InitProducerIdResponse,
    DescribeAclsResponse,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    DescribeClientQuotasResponse,
    DescribeClusterResponse,
    ListConfigResourcesResponse
);

each!(
    MetadataResponse.topics,
    DescribeGroupsResponse.groups,
    CreateTopicsResponse.topics,
    DeleteTopicsResponse.responses,
    CreateAclsResponse.results,
    DeleteAclsResponse.filter_results,
    DescribeConfigsResponse.results,
    AlterConfigsResponse.responses,
    IncrementalAlterConfigsResponse.responses,
    CreatePartitionsResponse.results,
    DeleteGroupsResponse.results,
    DescribeTopicPartitionsResponse.topics
);

each_partition!(
    ProduceResponse.responses.partition_responses,
    ListOffsetsResponse.topics.partitions,
    OffsetCommitResponse.topics.partitions,
    DeleteRecordsResponse.topics.partitions,
    OffsetForLeaderEpochResponse.topics.partitions
);

errors! {
    FetchResponse: it => {
        let partitions = it.responses.iter().flat_map(|topic| &topic.partitions);
        [it.error_code].into_iter().chain(partitions.map(|partition| partition.error_code))
    };
    OffsetFetchResponse: it => [it.error_code].into_iter().chain(it.groups.iter().map(|group| group.error_code));
    FindCoordinatorResponse: it => [it.error_code].into_iter().chain(it.coordinators.iter().map(|one| one.error_code));
    LeaveGroupResponse: it => [it.error_code].into_iter().chain(it.members.iter().map(|member| member.error_code));
    DescribeLogDirsResponse: it => [it.error_code].into_iter().chain(it.results.iter().map(|one| one.error_code));
    OffsetDeleteResponse: it => {
        let partitions = it.topics.iter().flat_map(|topic| &topic.partitions);
        [it.error_code].into_iter().chain(partitions.map(|partition| partition.error_code))
    };
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use kafka_protocol::messages::{FetchResponse, HeartbeatResponse};

    use super::*;

    /// Goal: the first error counts, wherever it stands, and none is 0. Method: one of each depth.
    #[test]
    fn the_first_error_is_found_wherever_it_stands() {
        assert_eq!(HeartbeatResponse::default().first_error(), 0);
        assert_eq!(HeartbeatResponse::default().with_error_code(27).first_error(), 27);
        let partition = |code| PartitionData::default().with_error_code(code);
        let topic = FetchableTopicResponse::default().with_partitions(vec![partition(0), partition(6), partition(3)]);
        let answer = FetchResponse::default().with_responses(vec![topic]);
        assert_eq!(answer.first_error(), 6);
        assert_eq!(answer.with_error_code(70).first_error(), 70);
    }
}
