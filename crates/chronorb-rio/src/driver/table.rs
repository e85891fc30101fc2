//! The open classes of an interface, and their rules.

use super::DriverError;
use crate::class::{ClassId, MAX_CLASSES, Rule, Rules};

/// The classes that are open, and the rules of the interface.
#[derive(Clone, Debug)]
pub(super) struct Table {
    open: [bool; MAX_CLASSES],
    rules: Rules,
}

impl Table {
    /// Creates a table without open classes.
    pub(super) fn new() -> Self {
        Self {
            open: [false; MAX_CLASSES],
            rules: Rules::new(),
        }
    }

    /// Opens a class with these rules; their own class numbers are ignored. On an error, nothing is
    /// changed.
    pub(super) fn open(&mut self, class: ClassId, rules: &[Rule]) -> Result<(), DriverError> {
        if self.is_open(class) {
            return Err(DriverError::Open(class));
        }
        for rule in rules {
            let own = Rule {
                class,
                ..rule.clone()
            };
            if let Err(error) = self.rules.add(own) {
                self.rules.remove_class(class);
                return Err(error.into());
            }
        }
        self.open[class.index()] = true;
        Ok(())
    }

    /// Closes a class and removes its rules.
    pub(super) fn close(&mut self, class: ClassId) {
        self.open[class.index()] = false;
        self.rules.remove_class(class);
    }

    /// Adds a rule to an open class.
    pub(super) fn add(&mut self, rule: &Rule) -> Result<(), DriverError> {
        self.check_open(rule.class)?;
        Ok(self.rules.add(rule.clone())?)
    }

    #[cfg(test)]
    pub(super) fn remove(&mut self, rule: &Rule) {
        self.rules.remove(rule);
    }

    /// Sets the destination of unknown packets. If it is a class, the class must be open.
    #[cfg(test)]
    pub(super) fn set_unknown(
        &mut self,
        unknown: crate::class::Unknown,
    ) -> Result<(), DriverError> {
        if let crate::class::Unknown::Class(class) = unknown {
            self.check_open(class)?;
        }
        self.rules.set_unknown(unknown);
        Ok(())
    }

    pub(super) const fn rules(&self) -> &Rules {
        &self.rules
    }

    fn is_open(&self, class: ClassId) -> bool {
        self.open[class.index()]
    }

    fn check_open(&self, class: ClassId) -> Result<(), DriverError> {
        if self.is_open(class) {
            Ok(())
        } else {
            Err(DriverError::Closed(class))
        }
    }
}
