//! [`Catalog`]: names to tables and views, in the order in which a script declares them.

use std::{collections::BTreeMap, sync::Arc};

use streamkeeper_types::{Code, Error};

use super::{Table, View};
use crate::{
    parse::{Script, Statement},
    position::Position,
};

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Relation {
    Table(Arc<Table>),
    View(Arc<View>),
}

impl Relation {
    #[must_use]
    pub fn position(&self) -> Position {
        match self {
            Self::Table(table) => table.position,
            Self::View(view) => view.position,
        }
    }
}

/// All tables and views of a script.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    relations: BTreeMap<String, Relation>,
}

impl Catalog {
    /// Collects what a script creates.
    ///
    /// # Errors
    /// SQL_INVALID for a name that is there twice, with the place of the second.
    pub fn from_script(script: &Script) -> Result<Self, Error> {
        let mut catalog = Self::default();
        for statement in &script.statements {
            match statement {
                Statement::CreateTable(table) => {
                    catalog.add(&table.name, Relation::Table(Arc::new(table.clone())))?;
                }
                Statement::CreateView(view) => catalog.add(&view.name, Relation::View(Arc::new(view.clone())))?,
                _ => {}
            }
        }
        Ok(catalog)
    }

    fn add(&mut self, name: &str, relation: Relation) -> Result<(), Error> {
        let position = relation.position();
        match self.relations.insert(name.to_owned(), relation) {
            None => Ok(()),
            Some(first) => Err(position
                .error(Code::SqlInvalid, format!("`{name}` is created twice, first at {}", first.position()))
                .way_out("rename one of them")),
        }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Relation> {
        self.relations.get(name)
    }

    /// All relations by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Relation)> {
        self.relations.iter().map(|(name, relation)| (name.as_str(), relation))
    }

    /// The error for a name that nothing has, naming the nearest that something has.
    #[must_use]
    pub fn not_found(&self, name: &str, position: Option<Position>) -> Error {
        let nearest = self
            .relations
            .keys()
            .map(|known| (strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase()), known))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        let error = Error::new(Code::SqlInvalid, format!("there is no table or view `{name}`"));
        let error = match nearest {
            Some((_, known)) => error.way_out(format!("did you mean `{known}`? Names are case-sensitive")),
            None => error.way_out("create it in the script, before the statement that uses it"),
        };
        match position {
            Some(position) => error.at(position.to_string()),
            None => error,
        }
    }
}
