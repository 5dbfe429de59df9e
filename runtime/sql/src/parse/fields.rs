//! After a query is parsed: `.field` behind anything that is no plain name, as in `items[1].price`, becomes the
//! subscript `['price']`, which is the one that DataFusion's planner takes there.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Subscript, VisitMut, VisitorMut};

use super::build::text;

/// Replaces every such access.
pub(super) fn resolve(tree: &mut impl VisitMut) {
    // The visitor never breaks.
    let _ = tree.visit(&mut Resolver);
}

struct Resolver;

impl VisitorMut for Resolver {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::CompoundFieldAccess { root, access_chain } = expr else { return ControlFlow::Continue(()) };
        // Names behind a name may be those of a table and its column, which the planner tells apart.
        let is_name = matches!(**root, Expr::Identifier(_));
        let names = access_chain.iter().take_while(|access| is_name && matches!(access, AccessExpr::Dot(_))).count();
        for access in &mut access_chain[names..] {
            if let AccessExpr::Dot(Expr::Identifier(name)) = access {
                *access = AccessExpr::Subscript(Subscript::Index { index: text(name.value.clone()) });
            }
        }
        ControlFlow::Continue(())
    }
}
