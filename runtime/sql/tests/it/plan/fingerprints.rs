//! Which edits leave an operator's id, and so its state, alone.

use super::plan;

/// Ids of the operators with state, in the order of the graph.
fn ids(statements: &str) -> Vec<String> {
    let graph = plan(statements).graph;
    graph.nodes.iter().filter(|node| !node.state.is_empty()).map(|node| node.id.to_string()).collect()
}

const COUNTS: &str = "INSERT INTO printed SELECT auction, COUNT(*) FROM bid GROUP BY auction;";

#[test]
fn planning_twice_gives_the_same_ids() {
    assert_eq!(ids(COUNTS), ids(COUNTS));
}

#[test]
fn layout_aliases_and_views_do_not_matter() {
    let same = "CREATE VIEW v AS SELECT b.auction AS x, b.price AS p FROM bid AS b;
                INSERT INTO printed SELECT x AS y, COUNT(*) AS z FROM v GROUP BY x;";
    assert_eq!(ids(COUNTS), ids(same));
}

#[test]
fn another_aggregate_or_having_keeps_the_id() {
    let more = "INSERT INTO printed SELECT auction, SUM(price) FROM bid GROUP BY auction HAVING MAX(bidder) > 3;";
    assert_eq!(ids(COUNTS), ids(more));
}

#[test]
fn another_insert_before_or_behind_keeps_the_id() {
    let before = format!("INSERT INTO files SELECT auction, channel, bidder FROM bid; {COUNTS}");
    let behind = format!("{COUNTS} INSERT INTO files SELECT auction, channel, bidder FROM bid;");
    assert_eq!(ids(COUNTS), ids(&before));
    assert_eq!(ids(COUNTS), ids(&behind));
}

#[test]
fn other_keys_filters_windows_and_targets_make_another_id() {
    let original = ids(COUNTS);
    for other in [
        "INSERT INTO printed SELECT bidder, COUNT(*) FROM bid GROUP BY bidder;",
        "INSERT INTO printed SELECT auction, COUNT(*) FROM bid WHERE price > 1 GROUP BY auction;",
        "CREATE TABLE other (a BIGINT, n BIGINT) WITH ('connector' = 'print');
         INSERT INTO other SELECT auction, COUNT(*) FROM bid GROUP BY auction;",
        "INSERT INTO printed SELECT auction, COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
         GROUP BY auction, window_start, window_end;",
    ] {
        assert_ne!(ids(other), original, "{other}");
    }
}

#[test]
fn equal_operators_get_ids_of_their_own() {
    let twice = ids(&format!("{COUNTS}{COUNTS}"));
    assert_eq!(twice.len(), 2);
    assert_ne!(twice[0], twice[1]);
    assert_eq!(twice[0], ids(COUNTS)[0]);
}

#[test]
fn every_node_of_a_graph_has_an_id_of_its_own() {
    let graph = plan(&format!(
        "{COUNTS}{COUNTS} INSERT INTO printed SELECT auction, bidder FROM bid UNION ALL SELECT auction, bidder FROM bid;"
    ))
    .graph;
    let mut ids: Vec<_> = graph.nodes.iter().map(|node| node.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), graph.nodes.len());
}

#[test]
fn aliases_of_states_are_the_targets_name_and_unique() {
    let graph = plan(&format!("{COUNTS}{COUNTS}")).graph;
    let aliases: Vec<&str> =
        graph.nodes.iter().flat_map(|node| &node.state).map(|state| state.alias.as_str()).collect();
    assert_eq!(aliases, ["printed", "printed_2"]);
}
