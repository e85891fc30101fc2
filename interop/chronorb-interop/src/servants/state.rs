//! The servants with state.

use chronorb::prelude::*;
use chronorb_rt::PiMutex;

use crate::idl::panel::{HIGHEST_LEVEL, Locked, Mode, Setting, SettingBuf};
use crate::idl::shapes::Point;
use crate::idl::*;

/// A servant of the interface `Notes`.
#[derive(Debug, Default)]
pub(crate) struct NotesObject {
    noted: PiMutex<NoteCounts>,
}

#[derive(Debug, Default)]
struct NoteCounts {
    count: i32,
    total: i64,
}

impl NotesObject {
    fn add(&self, n: i64) {
        let mut noted = self.noted.lock();
        noted.count = noted.count.wrapping_add(1);
        noted.total = noted.total.wrapping_add(n);
    }
}

impl NotesServant for NotesObject {
    fn note(&self, _: &Call<'_>, n: i32) -> Result<(), SystemException> {
        self.add(n.into());
        Ok(())
    }

    fn note_longs<'a>(
        &self,
        _: &Call<'a>,
        _: &'a str,
        v: Longs<'a>,
    ) -> Result<(), SystemException> {
        self.add(v.len() as i64);
        Ok(())
    }

    fn noted(&self, _: &Call<'_>) -> Result<(i32, i64), SystemException> {
        let noted = self.noted.lock();
        Ok((noted.count, noted.total))
    }

    fn forget(&self, _: &Call<'_>) -> Result<(), SystemException> {
        *self.noted.lock() = NoteCounts::default();
        Ok(())
    }
}

/// Serves `Panel`.
#[derive(Debug, Default)]
pub(crate) struct PanelObject {
    state: PiMutex<PanelState>,
}

#[derive(Debug, Default)]
struct PanelState {
    setting: SettingBuf,
    lit: bool,
    armed: bool,
    position: Point,
    table: EntriesBuf,
    changes: u32,
}

impl PanelObject {
    fn change(&self, set: impl FnOnce(&mut PanelState)) -> Result<(), SystemException> {
        let mut state = self.state.lock();
        set(&mut state);
        state.changes = state.changes.wrapping_add(1);
        Ok(())
    }
}

impl PanelServant for PanelObject {
    fn level(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(self.state.lock().setting.level_value)
    }

    fn set_level(&self, _: &Call<'_>, value: i32) -> Result<(), SystemException> {
        self.change(|state| state.setting.level_value = value)
    }

    fn label<'a>(&self, call: &Call<'a>) -> Result<&'a str, SystemException> {
        call.str(&self.state.lock().setting.label_value)
    }

    fn set_label<'a>(&self, _: &Call<'a>, value: &'a str) -> Result<(), SystemException> {
        self.change(|state| state.setting.label_value = value.to_owned())
    }

    fn lit(&self, _: &Call<'_>) -> Result<bool, SystemException> {
        Ok(self.state.lock().lit)
    }

    fn set_lit(&self, _: &Call<'_>, value: bool) -> Result<(), SystemException> {
        self.change(|state| state.lit = value)
    }

    fn armed(&self, _: &Call<'_>) -> Result<bool, SystemException> {
        Ok(self.state.lock().armed)
    }

    fn set_armed(&self, _: &Call<'_>, value: bool) -> Result<(), SystemException> {
        self.change(|state| state.armed = value)
    }

    fn position(&self, _: &Call<'_>) -> Result<Point, SystemException> {
        Ok(self.state.lock().position)
    }

    fn set_position(&self, _: &Call<'_>, value: &Point) -> Result<(), SystemException> {
        self.change(|state| state.position = *value)
    }

    fn current_mode(&self, _: &Call<'_>) -> Result<Mode, SystemException> {
        Ok(self.state.lock().setting.mode_value)
    }

    fn set_current_mode(&self, _: &Call<'_>, value: Mode) -> Result<(), SystemException> {
        self.change(|state| state.setting.mode_value = value)
    }

    fn table<'a>(&self, call: &Call<'a>) -> Result<Entries<'a>, SystemException> {
        let table = call.keep(self.state.lock().table.clone());
        call.fill(table.len(), |i| table[i].as_view())
    }

    fn set_table<'a>(&self, _: &Call<'a>, value: Entries<'a>) -> Result<(), SystemException> {
        self.change(|state| state.table = value.iter().map(Entry::to_owned).collect())
    }

    fn changes(&self, _: &Call<'_>) -> Result<u32, SystemException> {
        Ok(self.state.lock().changes)
    }

    fn title<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("chronorb interop panel")
    }

    fn apply<'a>(&self, _: &Call<'a>, v: &Setting<'a>) -> Result<(), ApplyError<'a>> {
        let mut state = self.state.lock();
        if state.armed {
            return Err(Locked.into());
        }
        if v.level_value > HIGHEST_LEVEL {
            let (code, reason) = (v.level_value, "");
            return Err(Refused { code, reason }.into());
        }
        state.setting = v.to_owned();
        state.changes = state.changes.wrapping_add(1);
        Ok(())
    }

    fn current<'a>(&self, call: &Call<'a>) -> Result<Setting<'a>, SystemException> {
        Ok(call.keep(self.state.lock().setting.clone()).as_view())
    }

    fn clear(&self, _: &Call<'_>) -> Result<(), SystemException> {
        *self.state.lock() = PanelState::default();
        Ok(())
    }
}

/// Serves `Bottom`.
#[derive(Debug, Default)]
pub(crate) struct BottomObject {
    height: PiMutex<i32>,
}

impl TopServant for BottomObject {
    fn height(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(*self.height.lock())
    }

    fn set_height(&self, _: &Call<'_>, value: i32) -> Result<(), SystemException> {
        *self.height.lock() = value;
        Ok(())
    }

    fn top_name<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("top")
    }

    fn kind<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("bottom")
    }
}

impl LeftServant for BottomObject {
    fn left_name<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("left")
    }
}

impl RightServant for BottomObject {
    fn right_name<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("right")
    }
}

impl BottomServant for BottomObject {
    fn bottom_name<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("bottom")
    }
}
