//! Statements with words lost, doubled or exchanged: whatever comes out, it is a plan or an error with a place.

use proptest::prelude::*;
use streamkeeper_types::Code;

use super::{TABLES, try_plan};

const STATEMENTS: [&str; 6] = [
    "INSERT INTO printed SELECT auction , COUNT ( * ) FROM bid WHERE price > 3 GROUP BY auction HAVING SUM ( price ) > 10",
    "INSERT INTO files SELECT auction , MAX ( channel ) , COUNT ( DISTINCT bidder ) FILTER ( WHERE price > 1 ) \
     FROM TABLE ( TUMBLE ( TABLE bid , DESCRIPTOR ( ts ) , INTERVAL '1' MINUTE ) ) GROUP BY auction , window_start , window_end",
    "INSERT INTO files SELECT auction , channel , n FROM ( SELECT * , ROW_NUMBER ( ) OVER ( PARTITION BY auction \
     ORDER BY ts DESC ) AS n FROM bid ) WHERE n = 1 AND price > 2",
    "INSERT INTO printed SELECT auction , price - LAG ( price , 1 , 0 ) OVER ( PARTITION BY auction ORDER BY pt ) FROM bid",
    "INSERT INTO printed SELECT a , n FROM ( SELECT auction AS a , bidder AS n FROM bid UNION ALL SELECT k , k FROM plain )",
    "CREATE VIEW v ( a , b ) AS SELECT DISTINCT auction , CAST ( price AS BIGINT ) FROM bid ; INSERT INTO printed SELECT * FROM v",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn damaged_statements_never_end_in_a_bug(
        which in 0..STATEMENTS.len(),
        damage in prop::collection::vec((0_usize..60, 0_usize..60, 0_u8..3), 1..3),
    ) {
        let mut words: Vec<&str> = STATEMENTS[which].split_whitespace().collect();
        for (from, to, kind) in damage {
            let (from, to) = (from % words.len(), to % words.len());
            match kind {
                0 => drop(words.remove(from)),
                1 => words.insert(to, words[from]),
                _ => words.swap(from, to),
            }
        }
        let text = format!("{TABLES}{}", words.join(" "));
        if let Err(error) = try_plan(&text) {
            prop_assert_ne!(error.code, Code::Internal, "{}\n{}", words.join(" "), error);
            prop_assert!(error.place.iter().any(|place| place.starts_with("line ")), "{}\n{}", words.join(" "), error);
        }
    }
}

#[test]
fn a_column_that_each_view_doubles_plans_in_no_time() {
    let mut text = format!("{TABLES}CREATE VIEW v0 AS SELECT auction AS a FROM bid;");
    for n in 1..60 {
        let below = n - 1;
        text += &format!("CREATE VIEW v{n} AS SELECT a + a AS a FROM v{below};");
    }
    text += "INSERT INTO printed SELECT a, a FROM v59";
    let plan = try_plan(&text).unwrap();
    assert!(plan.explain(streamkeeper_sql::explain::Format::Tree).len() < 100_000);
}
