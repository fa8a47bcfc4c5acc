//! One file per API; the router.
//!
//! The table below is the only list of what is served: ApiVersions, the dispatch and `docs/KAFKA_PROTOCOL_COVERAGE.md` come
//! from it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use futures_util::future::{self, BoxFuture};
use kafka_protocol::messages::{self, ApiKey};

use crate::answers::Share;
use crate::api::acls::{create as create_acls, delete as delete_acls, describe as describe_acls};
use crate::broker::Broker;
use crate::store::Store;
use crate::wire::{self, Request, WireError};
use first_error::FirstError;

mod acls;
mod admit;
mod alter_configs;
mod api_versions;
mod config_view;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_client_quotas;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_topic_partitions;
mod elect_leaders;
pub(crate) mod failure;
mod fetch;
mod find_coordinator;
mod first_error;
#[cfg(test)]
#[cfg(feature = "embedded")]
mod group_api_tests;
mod group_fields;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leaders;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod place;
mod produce;
mod resource;
mod sync_group;

/// Who asks, and in which version.
#[derive(Debug, Clone)]
pub struct Call {
    /// The request's version; always one that is served.
    pub version: i16,
    /// What the client calls itself.
    pub client_id: Option<Arc<str>>,
    /// Where it is.
    pub peer: SocketAddr,
}

/// Why a connection ends without an answer; goes to the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Close(pub String);

impl From<WireError> for Close {
    fn from(error: WireError) -> Self {
        Self(error.to_string())
    }
}

/// One API as it is served.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Its number.
    pub key: ApiKey,
    /// Its name.
    pub name: &'static str,
    /// The oldest version served.
    pub min: i16,
    /// The newest version served.
    pub max: i16,
    /// The oldest version that we say we serve.
    pub advertised_min: i16,
}

impl Route {
    /// The route of an API by its number.
    pub fn find(key: i16) -> Option<&'static Self> {
        ROUTES.iter().find(|route| route.key as i16 == key)
    }

    /// Whether a version is served.
    pub fn serves(&self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// ApiVersions is how a client learns which versions it may use, so every version of it gets an answer.
    pub fn answers_any_version(&self) -> bool {
        self.key == ApiKey::ApiVersions
    }
}

/// An answer on its way: a frame, or nothing (acks=0), or the end of the connection.
///
/// Produce is under way already; everything else begins when this is polled first.
pub(crate) type Answer = BoxFuture<'static, Result<Option<Reply>, Close>>;

/// The frame of an answer, and the memory that it has a share of.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) frame: BytesMut,
    pub(crate) share: Option<Share>,
}

impl From<BytesMut> for Reply {
    fn from(frame: BytesMut) -> Self {
        Self { frame, share: None }
    }
}

/// `answer`: `module::handle` is called when the request's turn has come. `begin`: `module::begin` is called at once, and the
/// future that it gives is awaited in turn. `share`: as `answer`, with a share of the memory for answers.
macro_rules! routes {
    ($($kind:ident $api:ident($request:ident) serve $min:literal..=$max:literal advertise $first:literal by $module:ident;)*) => {
        /// Everything that is served, by number.
        pub const ROUTES: &[Route] = &[$(
            Route { key: ApiKey::$api, name: stringify!($api), min: $min, max: $max, advertised_min: $first },
        )*];

        /// Takes a request up. Waits only where Produce waits for room.
        pub(crate) async fn dispatch<S: Store>(broker: &Arc<Broker<S>>, mut request: Request) -> Answer {
            match request.route.key as i16 {
                $(key if key == ApiKey::$api as i16 => {
                    routes!(@$kind $module, messages::$request, broker, request)
                })*
                key => future::ready(Err(Close(format!("API {key} has no handler")))).boxed_answer(),
            }
        }

        /// What the codec makes of a body, and how it writes that again; for tests of the guard.
        #[cfg(any(test, feature = "fuzz"))]
        pub(crate) fn recode(key: ApiKey, version: i16, body: &mut bytes::Bytes) -> Result<BytesMut, String> {
            use kafka_protocol::protocol::{Decodable, Encodable};
            let mut again = BytesMut::new();
            match key as i16 {
                $(key if key == ApiKey::$api as i16 => {
                    let request = messages::$request::decode(body, version).map_err(|error| error.to_string())?;
                    request.encode(&mut again, version).map_err(|error| error.to_string())?;
                })*
                key => return Err(format!("API {key} has no route")),
            }
            Ok(again)
        }

        /// The body of a request that says nothing; for tests of the guard.
        #[cfg(test)]
        pub(crate) fn empty_request(key: ApiKey, version: i16) -> Result<BytesMut, String> {
            use kafka_protocol::protocol::Encodable;
            let mut body = BytesMut::new();
            match key as i16 {
                $(key if key == ApiKey::$api as i16 => {
                    messages::$request::default().encode(&mut body, version).map_err(|error| error.to_string())?;
                })*
                key => return Err(format!("API {key} has no route")),
            }
            Ok(body)
        }
    };
    (@answer $module:ident, $request:ty, $broker:ident, $frame:ident) => {{
        let broker = Arc::clone($broker);
        async move {
            let request: $request = wire::decode(&mut $frame)?;
            let response = $module::handle(&broker, &$frame.call, request).await?;
            broker.config.metrics.request($frame.route.key as i16, response.first_error());
            Ok(Some(wire::encode($frame.correlation_id, $frame.call.version, &response)?.into()))
        }
        .boxed_answer()
    }};
    (@share $module:ident, $request:ty, $broker:ident, $frame:ident) => {{
        let broker = Arc::clone($broker);
        async move {
            let request: $request = wire::decode(&mut $frame)?;
            let (response, share) = $module::handle(&broker, &$frame.call, request).await?;
            broker.config.metrics.request($frame.route.key as i16, response.first_error());
            Ok(Some(Reply { frame: wire::encode($frame.correlation_id, $frame.call.version, &response)?, share }))
        }
        .boxed_answer()
    }};
    (@any_version $module:ident, $request:ty, $broker:ident, $frame:ident) => {{
        let answered = $module::answer(&mut $frame).map(|frame| Some(frame.into()));
        future::ready(answered.map_err(Close::from)).boxed_answer()
    }};
    (@begin $module:ident, $request:ty, $broker:ident, $frame:ident) => {{
        let request: $request = match wire::decode(&mut $frame) {
            Ok(request) => request,
            Err(error) => return future::ready(Err(error.into())).boxed_answer(),
        };
        let answer = match $module::begin($broker, &$frame.call, request).await {
            Ok(answer) => answer,
            Err(close) => return future::ready(Err(close)).boxed_answer(),
        };
        let (correlation_id, version) = ($frame.correlation_id, $frame.call.version);
        let (key, metrics) = ($frame.route.key as i16, Arc::clone(&$broker.config.metrics));
        async move {
            let response = answer.await?;
            metrics.request(key, response.as_ref().map_or(0, FirstError::first_error));
            match response {
                Some(response) => Ok(Some(wire::encode(correlation_id, version, &response)?.into())),
                None => Ok(None),
            }
        }
        .boxed_answer()
    }};
}

trait BoxedAnswer: Future<Output = Result<Option<Reply>, Close>> + Send + Sized + 'static {
    fn boxed_answer(self) -> Answer {
        Box::pin(self)
    }
}

impl<F: Future<Output = Result<Option<Reply>, Close>> + Send + 'static> BoxedAnswer for F {}

routes! {
    begin Produce(ProduceRequest) serve 3..=13 advertise 0 by produce;
    share Fetch(FetchRequest) serve 4..=18 advertise 4 by fetch;
    answer ListOffsets(ListOffsetsRequest) serve 1..=10 advertise 1 by list_offsets;
    answer Metadata(MetadataRequest) serve 0..=13 advertise 0 by metadata;
    answer OffsetCommit(OffsetCommitRequest) serve 2..=9 advertise 2 by offset_commit;
    answer OffsetFetch(OffsetFetchRequest) serve 1..=9 advertise 1 by offset_fetch;
    answer FindCoordinator(FindCoordinatorRequest) serve 0..=6 advertise 0 by find_coordinator;
    answer JoinGroup(JoinGroupRequest) serve 0..=9 advertise 0 by join_group;
    answer Heartbeat(HeartbeatRequest) serve 0..=4 advertise 0 by heartbeat;
    answer LeaveGroup(LeaveGroupRequest) serve 0..=5 advertise 0 by leave_group;
    answer SyncGroup(SyncGroupRequest) serve 0..=5 advertise 0 by sync_group;
    answer DescribeGroups(DescribeGroupsRequest) serve 0..=6 advertise 0 by describe_groups;
    answer ListGroups(ListGroupsRequest) serve 0..=5 advertise 0 by list_groups;
    any_version ApiVersions(ApiVersionsRequest) serve 0..=4 advertise 0 by api_versions;
    answer CreateTopics(CreateTopicsRequest) serve 2..=7 advertise 2 by create_topics;
    answer DeleteTopics(DeleteTopicsRequest) serve 1..=6 advertise 1 by delete_topics;
    answer DeleteRecords(DeleteRecordsRequest) serve 0..=2 advertise 0 by delete_records;
    answer InitProducerId(InitProducerIdRequest) serve 0..=5 advertise 0 by init_producer_id;
    answer OffsetForLeaderEpoch(OffsetForLeaderEpochRequest) serve 2..=4 advertise 2 by offset_for_leader_epoch;
    answer DescribeAcls(DescribeAclsRequest) serve 1..=3 advertise 1 by describe_acls;
    answer CreateAcls(CreateAclsRequest) serve 1..=3 advertise 1 by create_acls;
    answer DeleteAcls(DeleteAclsRequest) serve 1..=3 advertise 1 by delete_acls;
    answer DescribeConfigs(DescribeConfigsRequest) serve 1..=4 advertise 1 by describe_configs;
    answer AlterConfigs(AlterConfigsRequest) serve 0..=2 advertise 0 by alter_configs;
    answer DescribeLogDirs(DescribeLogDirsRequest) serve 1..=4 advertise 1 by describe_log_dirs;
    answer CreatePartitions(CreatePartitionsRequest) serve 0..=3 advertise 0 by create_partitions;
    answer DeleteGroups(DeleteGroupsRequest) serve 0..=2 advertise 0 by delete_groups;
    answer ElectLeaders(ElectLeadersRequest) serve 0..=2 advertise 0 by elect_leaders;
    answer IncrementalAlterConfigs(IncrementalAlterConfigsRequest) serve 0..=1 advertise 0 by incremental_alter_configs;
    answer ListPartitionReassignments(ListPartitionReassignmentsRequest) serve 0..=0 advertise 0 by list_partition_reassignments;
    answer OffsetDelete(OffsetDeleteRequest) serve 0..=0 advertise 0 by offset_delete;
    answer DescribeClientQuotas(DescribeClientQuotasRequest) serve 0..=1 advertise 0 by describe_client_quotas;
    answer DescribeCluster(DescribeClusterRequest) serve 0..=2 advertise 0 by describe_cluster;
    answer ListConfigResources(ListConfigResourcesRequest) serve 0..=1 advertise 0 by list_config_resources;
    answer DescribeTopicPartitions(DescribeTopicPartitionsRequest) serve 0..=0 advertise 0 by describe_topic_partitions;
}

#[cfg(test)]
#[cfg(feature = "embedded")]
mod admin_tests;
#[cfg(test)]
#[cfg(feature = "embedded")]
mod compressed_tests;
#[cfg(test)]
mod count_tests;
#[cfg(test)]
mod coverage;
#[cfg(test)]
#[cfg(feature = "embedded")]
mod fetch_tests;
#[cfg(test)]
#[cfg(feature = "embedded")]
mod kill_tests;
#[cfg(test)]
#[cfg(feature = "embedded")]
mod log_rig;
#[cfg(test)]
#[cfg(feature = "embedded")]
mod produce_tests;
#[cfg(all(test, feature = "postgres"))]
mod standby_tests;
