//! What is told of an experiment whose figures are tables.

use std::fmt::Write;

use super::Table;
use super::{document, environment_table, escape};
use crate::claim::{self, Claim};
use crate::environment::Environment;

/// All that is told of an experiment, on a terminal and on a page, beside the plots of the page.
#[derive(Debug)]
pub(crate) struct Telling<'a> {
    /// What it is about, in a sentence or two.
    pub(crate) lead: &'a str,
    /// What has to be known beside the figures.
    pub(crate) caveats: Vec<String>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) tables: Vec<Table>,
    /// How the figures are to be understood, in sentences.
    pub(crate) notes: Vec<String>,
    pub(crate) environment: &'a Environment,
    /// The commands that repeat it, a line each.
    pub(crate) commands: String,
}

impl Telling<'_> {
    /// For terminals.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.lead);
        for caveat in &self.caveats {
            let _ = writeln!(text, "{caveat}");
        }
        for table in &self.tables {
            let _ = write!(text, "\n{}", table.text());
        }
        let _ = write!(text, "\n{}", claim::text(&self.claims));
        for note in &self.notes {
            let _ = write!(text, "\n{note}");
        }
        text.push('\n');
        text
    }

    /// The report as one HTML page, for light and dark screens, without anything from the network. `sections`, HTML, have
    /// the plots.
    pub(crate) fn html(&self, headline: &str, sections: &str) -> String {
        let mut body = format!("<p class=\"lead\">{}</p>\n", escape(self.lead));
        for caveat in &self.caveats {
            let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(caveat));
        }
        body.push_str(&claim::table(&self.claims));
        body.push_str(sections);
        body.push_str("<h2>The figures</h2>\n");
        for table in &self.tables {
            body.push_str(&table.html());
        }
        body.push_str("<h2>How it was measured</h2>\n");
        for note in &self.notes {
            let _ = writeln!(body, "<p>{}</p>", escape(note));
        }
        let _ = write!(
            body,
            "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>{}</pre>\n",
            environment_table(self.environment),
            escape(&self.commands),
        );
        document(headline, &body)
    }
}
