//! The calls of all rounds together, by what was tried.

use crate::stats::Record;

/// The records of several trials, each merged over its rounds.
#[derive(Clone, Debug)]
pub(crate) struct PooledRecords<K>(Vec<(K, Record)>);

impl<K> Default for PooledRecords<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + PartialEq> PooledRecords<K> {
    /// Adds the calls of a round.
    pub(crate) fn add(&mut self, trial: K, calls: &Record) {
        let at = self.0.iter().position(|(of, _)| *of == trial);
        let at = at.unwrap_or_else(|| {
            self.0.push((trial, Record::new()));
            self.0.len() - 1
        });
        self.0[at].1.merge(calls);
    }

    /// Returns the calls of a trial; none where no call was answered.
    pub(crate) fn get(&self, trial: K) -> Option<&Record> {
        let mut records = self.0.iter();
        let (_, record) = records.find(|(of, record)| *of == trial && record.calls() > 0)?;
        Some(record)
    }
}
