//! Random histories of a group: every ticket is answered once, one leads, the past is never told OK.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use proptest::prelude::*;

use super::rig::{Rig, Who, fixed, member};
use super::{Group, Ticket, Timer};

#[derive(Debug, Clone)]
enum Move {
    Enter,
    EnterFixed(u8),
    Join(usize),
    JoinWithNews(usize),
    Sync(usize),
    Heartbeat(usize),
    Commit(usize),
    Leave(usize),
    Ring(usize),
    Reload,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let any = 0..6_usize;
    let one = prop_oneof![
        3 => Just(Move::Enter),
        2 => (0..3_u8).prop_map(Move::EnterFixed),
        4 => any.clone().prop_map(Move::Join),
        1 => any.clone().prop_map(Move::JoinWithNews),
        6 => any.clone().prop_map(Move::Sync),
        3 => any.clone().prop_map(Move::Heartbeat),
        2 => any.clone().prop_map(Move::Commit),
        1 => any.clone().prop_map(Move::Leave),
        4 => any.prop_map(Move::Ring),
        1 => Just(Move::Reload),
    ];
    proptest::collection::vec(one, 1..120)
}

/// What a client believes.
struct Client {
    who: Who,
    generation: i32,
    asked: Vec<Ticket>,
}

#[derive(Default)]
struct World {
    clients: Vec<Client>,
    /// Who leads each generation, by what clients were told.
    leaders: BTreeMap<i32, Arc<str>>,
    /// The last state that was saved.
    saved: Option<bytes::Bytes>,
    saves: usize,
}

impl World {
    /// Clients learn what they were told.
    fn listen(&mut self, rig: &Rig) {
        if rig.saves > self.saves {
            self.saves = rig.saves;
            self.saved = Some(rig.group.save());
        }
        for client in &mut self.clients {
            let answered: Vec<Ticket> =
                client.asked.iter().copied().filter(|ticket| !rig.open.contains(ticket)).collect();
            client.asked.retain(|ticket| rig.open.contains(ticket));
            for ticket in answered {
                match rig.joined(ticket) {
                    Some(Ok(joined)) => {
                        client.generation = joined.generation;
                        client.who.id = Arc::clone(&joined.member);
                        // A static leader that comes back is another member, but not another leader.
                        if joined.leader == joined.member && !joined.skip_assignment {
                            let leader = self.leaders.entry(joined.generation).or_insert_with(|| joined.leader.clone());
                            assert_eq!(*leader, joined.leader, "two leaders in generation {}", joined.generation);
                        }
                        assert_eq!(joined.members.is_empty(), joined.leader != joined.member);
                    }
                    Some(Err(refusal)) if refusal.error == ResponseError::MemberIdRequired => {
                        client.who.id = Arc::clone(&refusal.member);
                    }
                    Some(Err(_)) | None => {}
                }
            }
        }
    }

    fn act(&mut self, rig: &mut Rig, act: &Move) {
        match act {
            Move::Enter => self.start(rig, member("")),
            Move::EnterFixed(name) => self.start(rig, fixed(&format!("machine-{name}"))),
            Move::Join(index) => self.with(*index, |client| {
                let who = client.who.clone();
                client.asked.push(rig.join(&who));
            }),
            Move::JoinWithNews(index) => self.with(*index, |client| {
                let topic = format!("topic-{}", rig.now);
                let who = client.who.clone().wants(&[&topic]);
                client.asked.push(rig.join(&who));
            }),
            Move::Sync(index) => self.with(*index, |client| {
                let (who, generation) = (client.who.clone(), client.generation);
                client.asked.push(rig.sync(&who, generation, &[(&*who.id, "work")]));
            }),
            Move::Heartbeat(index) => self.with(*index, |client| {
                let told = rig.heartbeat(&client.who, client.generation);
                assert!(told.is_err() || client.generation == rig.group.generation(), "the past was told OK");
            }),
            Move::Commit(index) => self.with(*index, |client| {
                let told = rig.group.check_commit(&client.who.identity(), client.generation);
                let current = client.generation == rig.group.generation() || client.generation < 0;
                assert!(told.is_err() || current, "the past may commit");
            }),
            Move::Leave(index) => self.with(*index, |client| drop(rig.leave(&[&client.who]))),
            Move::Ring(index) => {
                let timer = rig.timers.keys().nth(index % rig.timers.len().max(1)).cloned();
                if let Some(timer) = timer {
                    rig.ring(&timer);
                }
            }
            Move::Reload => self.reload(rig),
        }
    }

    fn start(&mut self, rig: &mut Rig, who: Who) {
        let asked = vec![rig.join(&who)];
        self.clients.push(Client { who, generation: -1, asked });
        if self.clients.len() > 6 {
            self.clients.remove(0);
        }
    }

    fn with(&mut self, index: usize, act: impl FnOnce(&mut Client)) {
        let count = self.clients.len().max(1);
        if let Some(client) = self.clients.get_mut(index % count) {
            act(client);
        }
    }

    /// The coordinator dies; another loads what was saved. Who waited asks again by itself.
    fn reload(&mut self, rig: &mut Rig) {
        rig.timers.clear();
        rig.open.clear();
        for client in &mut self.clients {
            client.asked.clear();
        }
        let Some(saved) = &self.saved else {
            rig.group = Group::new(rig.now);
            return;
        };
        let (group, step) = Group::load(saved.clone()).expect("what was saved can be read");
        rig.group = group;
        rig.take(step);
    }
}

fn check(rig: &Rig) {
    let leader = rig.group.leader.as_ref();
    assert!(leader.is_none_or(|leader| rig.group.members.contains_key(leader)), "the leader is a member");
    assert_eq!(leader.is_none(), rig.group.members.is_empty(), "who has members has a leader");
    for (instance, id) in &rig.group.instances {
        let owner = rig.group.members.get(id).expect("a static name belongs to a member");
        assert_eq!(owner.instance.as_ref(), Some(instance));
    }
    for member in rig.group.members.values() {
        assert!(member.joining.is_none() || matches!(rig.group.phase, super::Phase::Preparing(_)));
        assert!(member.syncing.is_none() || rig.group.phase == super::Phase::Completing);
        let clocked = rig.timers.contains_key(&Timer::Session(Arc::clone(&member.id)));
        assert!(clocked || member.is_waiting(), "a member that nobody would ever miss");
    }
    for id in &rig.group.pending {
        assert!(rig.timers.contains_key(&Timer::Session(Arc::clone(id))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Goal: in any history every request is answered once, a generation has one leader, and no past generation is told OK, also
    /// when the coordinator is lost at any moment. Method: random moves of six clients, then all timers run out.
    #[test]
    fn any_history_keeps_the_promises(moves in moves()) {
        let mut rig = Rig::new();
        let mut world = World::default();
        for act in &moves {
            world.act(&mut rig, act);
            world.listen(&rig);
            check(&rig);
        }
        for _ in 0..200 {
            let Some(timer) = rig.timers.keys().next().cloned() else { break };
            rig.ring(&timer);
            world.listen(&rig);
            check(&rig);
        }
        prop_assert!(rig.timers.is_empty(), "timers for ever: {:?}", rig.timers);
        prop_assert!(rig.open.is_empty(), "never answered: {:?}", rig.open);
        prop_assert_eq!(rig.group.phase_name(), "Empty", "all are silent, so all are gone");
    }
}
