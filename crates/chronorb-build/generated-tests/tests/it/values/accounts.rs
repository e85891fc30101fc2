//! Values with their own code, and their factories.

use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

use chronorb::data::CdrError;
use chronorb::values::{DataInput, DataOutput};
use chronorb::{SystemException, impl_value};
use chronorb_generated_tests::values::{bank, shapes};

/// An account with a history.
#[derive(Debug)]
pub(crate) struct CheckingAccount {
    state: bank::AccountState,
    withdrawn: AtomicI32,
    audits: AtomicI32,
}

impl bank::Describable for CheckingAccount {
    fn description(&self) -> Result<String, SystemException> {
        Ok(format!("{} has {}", self.state.owner, self.state.cents))
    }
}

impl bank::Account for CheckingAccount {
    fn account_state(&self) -> &bank::AccountState {
        &self.state
    }

    fn audit(&self, _: &str) -> Result<(), SystemException> {
        self.audits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn audits(&self) -> Result<i32, SystemException> {
        Ok(self.audits.load(Ordering::Relaxed))
    }

    fn withdraw(&self, amount: i32) -> Result<i32, bank::WithdrawErrorBuf> {
        let left = self.state.cents - self.withdrawn.load(Ordering::Relaxed) - amount;
        if left < 0 {
            return Err(bank::OverdrawnBuf {
                holder: self.state.owner.clone(),
                missing: -left - self.withdrawn.load(Ordering::Relaxed),
            }
            .into());
        }
        Ok(left)
    }

    fn owner_name(&self) -> Result<String, SystemException> {
        Ok(self.state.owner.clone())
    }
}

impl_value!(CheckingAccount as bank::Account);

/// A factory of accounts from state, and of new ones.
pub(crate) struct Bank;

impl bank::AccountFactory for Bank {
    fn unmarshal(&self, state: bank::AccountState) -> Arc<dyn bank::Account> {
        Arc::new(CheckingAccount {
            state,
            withdrawn: AtomicI32::new(0),
            audits: AtomicI32::new(0),
        })
    }

    fn open(&self, owner: &str) -> Result<Arc<dyn bank::Account>, SystemException> {
        let owner = owner.to_owned();
        Ok(self.unmarshal(bank::AccountState { owner, cents: 0 }))
    }

    fn inherit(
        &self,
        owner: &str,
        cents: i32,
    ) -> Result<Arc<dyn bank::Account>, bank::InheritErrorBuf> {
        let owner = owner.to_owned();
        if cents < 0 {
            return Err(bank::OverdrawnBuf {
                holder: owner,
                missing: -cents,
            }
            .into());
        }
        Ok(self.unmarshal(bank::AccountState { owner, cents }))
    }
}

/// Savings without a factory.
#[derive(Debug)]
struct Hoard(bank::SavingsState);

impl bank::Describable for Hoard {
    fn description(&self) -> Result<String, SystemException> {
        Ok("savings".to_owned())
    }
}

impl bank::Account for Hoard {
    fn account_state(&self) -> &bank::AccountState {
        &self.0.base
    }

    fn audit(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn audits(&self) -> Result<i32, SystemException> {
        Ok(0)
    }

    fn withdraw(&self, amount: i32) -> Result<i32, bank::WithdrawErrorBuf> {
        Ok(self.0.cents - amount)
    }

    fn owner_name(&self) -> Result<String, SystemException> {
        Ok(self.0.owner.clone())
    }
}

impl bank::Savings for Hoard {
    fn savings_state(&self) -> &bank::SavingsState {
        &self.0
    }
}

impl_value!(Hoard as bank::Savings);

pub(crate) fn savings(owner: &str, cents: i32) -> Arc<dyn bank::Savings> {
    let owner = owner.to_owned();
    Arc::new(Hoard(bank::SavingsState {
        base: bank::AccountState { owner, cents },
        rate: 0.5,
    }))
}

/// A value that is written in reverse.
#[derive(Debug)]
pub(crate) struct Hidden(bank::SecretState);

impl Hidden {
    pub(crate) fn new(text: &str) -> Self {
        let text = text.to_owned();
        Self(bank::SecretState { text })
    }
}

impl bank::Secret for Hidden {
    fn secret_state(&self) -> &bank::SecretState {
        &self.0
    }

    fn marshal(&self, output: &mut DataOutput<'_>) -> Result<(), CdrError> {
        let backwards: String = self.0.text.chars().rev().collect();
        output.write_u8(1)?;
        output.write_str(&backwards)
    }
}

impl_value!(Hidden as bank::Secret);

struct SecretHider;

impl bank::SecretFactory for SecretHider {
    fn unmarshal(&self, input: &mut DataInput<'_>) -> Result<Arc<dyn bank::Secret>, CdrError> {
        if input.read_u8()? != 1 {
            return Err(CdrError::InvalidDiscriminator);
        }
        let backwards = input.read_str()?;
        let text: String = backwards.chars().rev().collect();
        Ok(Arc::new(Hidden::new(&text)))
    }
}

/// A shape that is a value.
#[derive(Debug)]
struct Tile(shapes::SquareState);

impl shapes::Shape for Tile {
    fn area(&self) -> Result<f64, SystemException> {
        Ok(self.0.side * self.0.side)
    }

    fn name(&self, prefix: &str) -> Result<String, SystemException> {
        Ok(format!("{prefix}square"))
    }
}

impl shapes::Square for Tile {
    fn square_state(&self) -> &shapes::SquareState {
        &self.0
    }
}

impl_value!(Tile as shapes::Square);

struct Tiles;

impl shapes::SquareFactory for Tiles {
    fn unmarshal(&self, state: shapes::SquareState) -> Arc<dyn shapes::Square> {
        Arc::new(Tile(state))
    }
}

pub(crate) fn square(side: f64) -> Arc<dyn shapes::Square> {
    Arc::new(Tile(shapes::SquareState { side }))
}

/// Registers all factories of this file, once.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        <dyn bank::Account>::register_factory(Bank).expect("new");
        <dyn bank::Secret>::register_factory(SecretHider).expect("new");
        <dyn shapes::Square>::register_factory(Tiles).expect("new");
        assert!(<dyn bank::Account>::register_factory(Bank).is_err());
    });
}
