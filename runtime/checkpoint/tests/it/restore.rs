//! Restore assignment (D3, D4, F3, F4).

use std::collections::BTreeMap;

use proptest::prelude::*;
use streamkeeper_checkpoint::{
    Manifest,
    restore::{DroppedState, MaxParallelism, RestoreOperator, RestorePlan, RestoreVertex, assign},
};
use streamkeeper_types::{Code, KeyGroup, OperatorId, Result, SubtaskId, VertexId, key_group, snapshot::ListMode};

use crate::snapshots::{MAX, keyed_operator, manifest, source};

fn operator(id: u128) -> RestoreOperator {
    RestoreOperator { id: OperatorId(id), former_id: None, name: format!("op{id}") }
}

fn vertex(vertex: u32, parallelism: u32, operators: &[u128], inputs: &[u32]) -> RestoreVertex {
    RestoreVertex {
        vertex: VertexId(vertex),
        parallelism,
        operators: operators.iter().copied().map(operator).collect(),
        inputs: inputs.iter().copied().map(VertexId).collect(),
    }
}

fn plan(manifest: &Manifest, vertices: &[RestoreVertex]) -> Result<RestorePlan> {
    assign(manifest, vertices, MaxParallelism::Derived(128), DroppedState::Refuse)
}

fn finish(manifest: &mut Manifest, operator: usize) {
    for subtask in &mut manifest.operators[operator].subtasks {
        subtask.finished = true;
    }
}

#[test]
fn equal_parallelism_gives_everybody_its_own_state_back() {
    let snapshot = manifest(vec![source(1, 3), keyed_operator(2, 3)]);
    let plan = plan(&snapshot, &[vertex(0, 3, &[1], &[]), vertex(1, 3, &[2], &[0])]).unwrap();
    for index in 0..3 {
        let of = |vertex| &plan.subtasks[&SubtaskId { vertex: VertexId(vertex), index }].operators;
        assert_eq!(of(0)[0].lists["splits"], [vec![u8::try_from(index).unwrap()]]);
        let old = snapshot.operators[1].subtasks[index as usize].keyed.clone().unwrap();
        assert_eq!(of(1)[0].keyed, [old]);
    }
    assert_eq!(plan.coordinators, BTreeMap::from([(OperatorId(1), vec![0xab])]));
    assert_eq!((plan.kept.len(), plan.new.len(), plan.dropped.len()), (2, 0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every key group reaches exactly the subtask that owns it, over two rescales; files keep their identity.
    #[test]
    fn every_key_group_reaches_exactly_its_owner(old in 1u32..20, new in 1u32..20) {
        let snapshot = manifest(vec![keyed_operator(2, old)]);
        let plan = plan(&snapshot, &[vertex(0, new, &[2], &[])]).unwrap();
        for group in (0..u16::try_from(MAX).unwrap()).map(KeyGroup) {
            let owner = key_group::subtask_of(group, new, MAX);
            for (subtask, restore) in &plan.subtasks {
                let handles: Vec<_> = restore.operators[0].keyed.iter().filter(|h| h.range.contains(group)).collect();
                prop_assert_eq!(handles.len(), usize::from(subtask.index == owner));
                for handle in handles {
                    let from = key_group::subtask_of(group, old, MAX);
                    let base = &handle.tables[0].base[0];
                    prop_assert!(base.visible.contains(group));
                    prop_assert_eq!(&base.file.path, &format!("shared/2-{from}.sst"));
                    prop_assert_eq!(&handle.deltas[0].path, &format!("shared/2-{from}.delta"));
                }
            }
        }
    }

    /// No item of a split list is lost or doubled, and nobody gets two more than another.
    #[test]
    fn split_items_are_dealt_out_evenly(old in 1u8..9, new in 1u32..9) {
        let plan = plan(&manifest(vec![source(1, old)]), &[vertex(0, new, &[1], &[])]).unwrap();
        let dealt: Vec<_> = plan.subtasks.values().map(|s| s.operators[0].lists["splits"].clone()).collect();
        let mut items: Vec<u8> = dealt.concat().concat();
        items.sort_unstable();
        prop_assert_eq!(items, (0..old).collect::<Vec<_>>());
        let sizes = dealt.iter().map(Vec::len);
        prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1 || u32::from(old) == new);
    }
}

#[test]
fn state_that_nobody_takes_is_refused_without_consent() {
    let snapshot = manifest(vec![keyed_operator(1, 2), keyed_operator(2, 2)]);
    let vertices = [vertex(0, 2, &[2, 3], &[])];
    let error = plan(&snapshot, &vertices).unwrap_err();
    assert_eq!(error.code, Code::StateIncompatible);
    assert!(error.cause.contains("op1"), "{error}");
    let plan = assign(&snapshot, &vertices, MaxParallelism::Derived(128), DroppedState::Allow).unwrap();
    assert_eq!((plan.kept, plan.new, plan.dropped), (vec!["op2".into()], vec!["op3".into()], vec!["op1".into()]));
}

#[test]
fn an_operator_without_state_may_go() {
    let mut snapshot = manifest(vec![keyed_operator(1, 1), source(2, 1)]);
    snapshot.operators[1].coordinator = None;
    snapshot.operators[1].subtasks[0].lists.clear();
    assert!(plan(&snapshot, &[vertex(0, 1, &[1], &[])]).unwrap().dropped.is_empty());
}

#[test]
fn b52_an_operator_that_got_a_name_finds_its_state_under_the_former_id() {
    let snapshot = manifest(vec![keyed_operator(1, 1)]);
    let mut named = vertex(0, 1, &[9], &[]);
    named.operators[0].former_id = Some(OperatorId(1));
    let plan = plan(&snapshot, &[named]).unwrap();
    let subtask = &plan.subtasks[&SubtaskId { vertex: VertexId(0), index: 0 }];
    assert_eq!(subtask.operators[0].operator, OperatorId(9));
    assert_eq!(subtask.operators[0].keyed.len(), 1);
}

#[test]
fn b42_every_operator_of_a_chain_gets_its_state() {
    let snapshot = manifest(vec![keyed_operator(1, 2), keyed_operator(2, 2)]);
    let plan = plan(&snapshot, &[vertex(0, 3, &[1, 2], &[])]).unwrap();
    assert!(plan.subtasks.values().all(|s| s.operators.len() == 2 && s.operators.iter().all(|o| !o.keyed.is_empty())));
}

#[test]
fn key_groups_of_the_snapshot_win_over_derived_ones_and_not_over_set_ones() {
    let snapshot = manifest(vec![keyed_operator(1, 1)]);
    let with = |parallelism, wanted| {
        let plan = assign(&snapshot, &[vertex(0, parallelism, &[1], &[])], wanted, DroppedState::Refuse);
        plan.map(|p| p.max_parallelism).map_err(|e| e.code)
    };
    assert_eq!(with(4, MaxParallelism::Derived(256)), Ok(128));
    assert_eq!(with(4, MaxParallelism::Set(128)), Ok(128));
    assert_eq!(with(4, MaxParallelism::Set(256)), Err(Code::ParallelismInvalid));
    assert_eq!(with(129, MaxParallelism::Derived(256)), Err(Code::ParallelismInvalid));
}

#[test]
fn f3_a_fully_finished_vertex_restores_as_finished_and_a_partly_finished_one_runs() {
    let mut snapshot = manifest(vec![source(1, 2), keyed_operator(2, 2)]);
    snapshot.operators[0].subtasks[0].finished = true;
    let vertices = [vertex(0, 2, &[1], &[]), vertex(1, 2, &[2], &[0])];
    assert!(plan(&snapshot, &vertices).unwrap().subtasks.values().all(|s| !s.finished));
    finish(&mut snapshot, 0);
    let finished: Vec<bool> = plan(&snapshot, &vertices).unwrap().subtasks.values().map(|s| s.finished).collect();
    assert_eq!(finished, [true, true, false, false]);
}

#[test]
fn f4_an_unfinished_operator_before_a_finished_one_is_refused() {
    let mut snapshot = manifest(vec![source(1, 1), keyed_operator(2, 1)]);
    finish(&mut snapshot, 1);
    let separate = [vertex(0, 1, &[1], &[]), vertex(1, 1, &[2], &[0])];
    assert_eq!(plan(&snapshot, &separate).unwrap_err().code, Code::StateIncompatible);
    finish(&mut snapshot, 0);
    assert!(plan(&snapshot, &separate).is_ok());
    let with_a_new_one = [vertex(0, 1, &[1, 5], &[]), vertex(1, 1, &[2], &[0])];
    assert!(plan(&snapshot, &with_a_new_one).unwrap_err().cause.contains("op5"));
}

#[test]
fn a_subtask_without_items_is_restored_empty_and_not_new() {
    let mut snapshot = manifest(vec![source(1, 2)]);
    snapshot.operators[0].subtasks[1].lists.get_mut("splits").unwrap().items.clear();
    let plan = plan(&snapshot, &[vertex(0, 2, &[1], &[])]).unwrap();
    let second = &plan.subtasks[&SubtaskId { vertex: VertexId(0), index: 1 }];
    assert_eq!(second.operators[0].lists["splits"], Vec::<Vec<u8>>::new(), "B81");
    assert_eq!(snapshot.operators[0].subtasks[0].lists["splits"].mode, ListMode::Split);
}
