//! Definitions.

use arbitrary::Result;

use super::{Kind, MAX_DEFINITIONS, Writer};

impl Writer<'_> {
    pub(super) fn file(&mut self) -> Result<()> {
        while self.next < MAX_DEFINITIONS {
            self.definition()?;
        }
        Ok(())
    }

    fn definition(&mut self) -> Result<()> {
        match self.below(24)? {
            0 | 1 => self.module()?,
            2..=4 => self.interface()?,
            5 | 6 => self.structure()?,
            7 => self.union()?,
            8 => self.enumeration()?,
            9 => self.exception()?,
            10 | 11 => self.typedef()?,
            12 | 13 => self.const_def()?,
            14 | 15 => self.value_type()?,
            16 => self.value_box()?,
            17 => self.bits()?,
            18 => self.component()?,
            19 => self.native()?,
            20 => self.annotation()?,
            21 => self.template()?,
            22 => self.recursion()?,
            _ => self.directive()?,
        }
        Ok(())
    }

    fn module(&mut self) -> Result<()> {
        if self.path.len() > 4 {
            return Ok(());
        }
        // A module can be opened again.
        let name = if self.path.is_empty() && self.one_in(3)? {
            "M".to_owned()
        } else {
            self.fresh("M")
        };
        self.put(&format!("module {name}"));
        self.open(&name, "};\n");
        for _ in 0..self.below(5)? + 1 {
            if self.next < MAX_DEFINITIONS {
                self.definition()?;
            }
        }
        if self.out.ends_with("{\n") {
            self.put("typedef long T;\n");
        }
        self.close();
        Ok(())
    }

    fn interface(&mut self) -> Result<()> {
        let name = self.fresh("I");
        let (local, is_abstract) = match self.below(6)? {
            0 => (true, false),
            1 => (false, true),
            _ => (false, false),
        };
        let head = match (local, is_abstract) {
            (true, _) => "local interface",
            (_, true) => "abstract interface",
            _ => "interface",
        };
        if self.one_in(5)? {
            self.put(&format!("{head} {name};\n"));
        }
        let bases = self.several(|kind| match kind {
            Kind::Interface {
                local: base_local,
                is_abstract: base_abstract,
            } => (local || !base_local) && (!is_abstract || base_abstract),
            _ => false,
        })?;
        self.put(&format!("{head} {name}"));
        self.bases(" : ", &bases);
        self.learn(&name, Kind::Interface { local, is_abstract });
        self.open(&name, "};\n");
        for _ in 0..self.below(5)? {
            match self.below(6)? {
                0 => self.typedef()?,
                1 => self.attribute()?,
                _ => self.operation()?,
            }
        }
        self.close();
        Ok(())
    }

    fn bases(&mut self, before: &str, bases: &[String]) {
        if !bases.is_empty() {
            self.put(before);
            self.put(&bases.join(", "));
        }
    }

    fn attribute(&mut self) -> Result<()> {
        let (name, ty) = (self.fresh("a"), self.param_type()?);
        let raises = self.several(|kind| kind == Kind::Exception)?.join(", ");
        match (self.one_in(2)?, raises.as_str()) {
            (true, "") => self.put(&format!("readonly attribute {ty} {name};\n")),
            (true, raises) => self.put(&format!(
                "readonly attribute {ty} {name} raises ({raises});\n"
            )),
            (false, "") => {
                let second = self.fresh("a");
                self.put(&format!("attribute {ty} {name}, {second};\n"));
            }
            (false, raises) => self.put(&format!(
                "attribute {ty} {name} getraises ({raises}) setraises ({raises});\n"
            )),
        }
        Ok(())
    }

    fn operation(&mut self) -> Result<()> {
        let name = self.fresh("f");
        let oneway = self.one_in(6)?;
        let result = if oneway || self.one_in(3)? {
            "void".to_owned()
        } else {
            self.param_type()?
        };
        let params = self.params(oneway)?;
        let head = if oneway { "oneway " } else { "" };
        let notes = self.pick(&["", "", "/// Does it.\n", "@ami ", "@rt::priority(5) "])?;
        self.put(&format!("{notes}{head}{result} {name}({params})"));
        if !oneway {
            let raises = self.several(|kind| kind == Kind::Exception)?.join(", ");
            if !raises.is_empty() {
                self.put(&format!(" raises ({raises})"));
            }
        }
        if self.one_in(8)? {
            self.put(" context (\"a.*\", \"b\")");
        }
        self.put(";\n");
        Ok(())
    }

    fn params(&mut self, only_in: bool) -> Result<String> {
        let mut params = Vec::new();
        for _ in 0..self.below(4)? {
            let mode = if only_in {
                "in"
            } else {
                self.pick(&["in", "in", "out", "inout"])?
            };
            let (ty, name) = (self.param_type()?, self.fresh("p"));
            params.push(format!("{mode} {ty} {name}"));
        }
        Ok(params.join(", "))
    }

    fn members(&mut self, least: usize) -> Result<()> {
        for _ in 0..self.below(4)? + least {
            let notes = self.annotations()?;
            let (ty, name) = (self.type_spec()?, self.fresh("m"));
            let declarator = self.declarator(&name)?;
            self.put(&format!("  {notes}{ty} {declarator};\n"));
        }
        Ok(())
    }

    fn structure(&mut self) -> Result<()> {
        let name = self.fresh("S");
        let notes = self.pick(&[
            "",
            "",
            "@final ",
            "@appendable ",
            "@mutable @nested ",
            "/** S */\n",
        ])?;
        self.put(&format!("{notes}struct {name}"));
        if self.one_in(4)?
            && let Some(base) = self.known(|kind| kind == Kind::Struct)?
        {
            self.put(&format!(" : {base}"));
        }
        self.put(" {\n");
        self.members(0)?;
        self.put("};\n");
        self.learn(&name, Kind::Struct);
        Ok(())
    }

    fn exception(&mut self) -> Result<()> {
        let name = self.fresh("X");
        self.put(&format!("exception {name} {{\n"));
        self.members(0)?;
        self.put("};\n");
        self.learn(&name, Kind::Exception);
        Ok(())
    }

    fn union(&mut self) -> Result<()> {
        let name = self.fresh("U");
        let (discriminator, labels) = self.discriminator()?;
        self.put(&format!("union {name} switch ({discriminator}) {{\n"));
        let mut with_default = false;
        let mut labels = labels.into_iter();
        let mut last = labels.len() == 0;
        while !last {
            let mut any = false;
            for _ in 0..self.below(2)? + 1 {
                if let Some(label) = labels.next() {
                    self.put(&format!("  case {label}:\n"));
                    any = true;
                }
            }
            last = labels.len() == 0 || self.one_in(3)?;
            // Labels that name all leave nothing for a default.
            if last && labels.len() > 0 && self.one_in(2)? && !with_default {
                self.put("  default:\n");
                with_default = true;
                any = true;
            }
            if any {
                let (ty, member) = (self.type_spec()?, self.fresh("m"));
                let declarator = self.declarator(&member)?;
                self.put(&format!("    {ty} {declarator};\n"));
            }
        }
        self.put("};\n");
        self.learn(&name, Kind::Type);
        Ok(())
    }

    fn enumeration(&mut self) -> Result<()> {
        let name = self.fresh("E");
        let notes = self.pick(&["", "", "@bit_bound(8) ", "@extensibility(APPENDABLE) "])?;
        let values = self.pick(&["", "", "@value(5) ", "@default_literal "])?;
        self.put(&format!(
            "{notes}enum {name} {{ {name}_0, {name}_1, {values}{name}_2 }};\n"
        ));
        self.learn(&name, Kind::Enum);
        Ok(())
    }

    fn typedef(&mut self) -> Result<()> {
        let name = self.fresh("T");
        if self.one_in(5)? {
            self.put(&format!("typedef long {name};\n"));
            self.learn(&name, Kind::Integer);
            return Ok(());
        }
        let ty = self.type_spec()?;
        let declarator = self.declarator(&name)?;
        self.put(&format!("typedef {ty} {declarator};\n"));
        self.learn(&name, Kind::Type);
        Ok(())
    }

    fn const_def(&mut self) -> Result<()> {
        let name = self.fresh("C");
        if self.one_in(3)? {
            let length = self.length()?;
            self.put(&format!("const unsigned long {name} = {length};\n"));
            self.learn(&name, Kind::Length);
            return Ok(());
        }
        let (ty, value) = self.constant()?;
        self.put(&format!("const {ty} {name} = {value};\n"));
        Ok(())
    }

    fn value_type(&mut self) -> Result<()> {
        let name = self.fresh("V");
        let event = self.one_in(4)?;
        let keyword = if event { "eventtype" } else { "valuetype" };
        let is_abstract = self.one_in(5)?;
        let head = if is_abstract {
            "abstract "
        } else if self.one_in(8)? {
            // A base that is custom is rarely right.
            "custom "
        } else {
            ""
        };
        if self.one_in(6)? {
            self.put(&format!(
                "{}{keyword} {name};\n",
                if is_abstract { head } else { "" }
            ));
        }
        self.put(&format!("{head}{keyword} {name}"));
        let base = self.known(|kind| match kind {
            Kind::Event => event && !is_abstract,
            Kind::Value { is_abstract: base } => !is_abstract || base,
            _ => false,
        })?;
        if let Some(base) = base
            && self.one_in(2)?
        {
            let truncatable = if self.one_in(3)? && head.is_empty() {
                "truncatable "
            } else {
                ""
            };
            self.put(&format!(" : {truncatable}{base}"));
        }
        let supports = self.several(|kind| {
            matches!(
                kind,
                Kind::Interface {
                    local: false,
                    is_abstract: true
                }
            )
        })?;
        self.bases(" supports ", &supports);
        self.open(&name, "};\n");
        for _ in 0..self.below(5)? {
            match self.below(5)? {
                0 if !is_abstract => {
                    let factory = self.fresh("make");
                    let params = self.params(true)?;
                    self.put(&format!("factory {factory}({params});\n"));
                }
                1 => self.operation()?,
                2 => self.attribute()?,
                _ if !is_abstract => {
                    let visibility = self.pick(&["public", "private"])?;
                    let (ty, member) = (self.type_spec()?, self.fresh("m"));
                    let declarator = self.declarator(&member)?;
                    self.put(&format!("{visibility} {ty} {declarator};\n"));
                }
                _ => self.typedef()?,
            }
        }
        self.close();
        let kind = if event {
            Kind::Event
        } else {
            Kind::Value { is_abstract }
        };
        self.learn(&name, kind);
        Ok(())
    }

    fn value_box(&mut self) -> Result<()> {
        let name = self.fresh("B");
        let ty = self.type_spec()?;
        self.put(&format!("valuetype {name} {ty};\n"));
        self.learn(&name, Kind::Type);
        Ok(())
    }

    fn bits(&mut self) -> Result<()> {
        if self.one_in(2)? {
            let name = self.fresh("K");
            let bound = self.pick(&["", "@bit_bound(8) ", "@bit_bound(64) "])?;
            let position = self.pick(&["", "@position(5) "])?;
            self.put(&format!(
                "{bound}bitmask {name} {{ {name}_a, {position}{name}_b }};\n"
            ));
            self.learn(&name, Kind::Type);
            return Ok(());
        }
        let name = self.fresh("Z");
        self.put(&format!("bitset {name}"));
        if self.one_in(4)?
            && let Some(base) = self.known(|kind| kind == Kind::Bitset)?
        {
            self.put(&format!(" : {base}"));
        }
        let (bits, other) = (self.below(8)? + 1, self.below(4)? + 1);
        self.put(&format!(
            " {{ bitfield<{bits}> {name}_a; bitfield<{other}>; bitfield<3, octet> {name}_b; }};\n"
        ));
        self.learn(&name, Kind::Bitset);
        Ok(())
    }

    fn component(&mut self) -> Result<()> {
        let name = self.fresh("Q");
        self.put(&format!("component {name}"));
        let supports = self.several(|kind| {
            matches!(
                kind,
                Kind::Interface {
                    local: false,
                    is_abstract: false
                }
            )
        })?;
        self.bases(" supports ", &supports);
        self.open(&name, "};\n");
        for _ in 0..self.below(4)? {
            let port = self.fresh("port");
            let interface =
                self.known(|kind| matches!(kind, Kind::Interface { local: false, .. }))?;
            let event = self.known(|kind| kind == Kind::Event)?;
            match (self.below(6)?, interface, event) {
                (0, Some(name), _) => self.put(&format!("provides {name} {port};\n")),
                (1, Some(name), _) => self.put(&format!("uses {name} {port};\n")),
                (2, Some(name), _) => self.put(&format!("uses multiple {name} {port};\n")),
                (3, _, Some(name)) => self.put(&format!("emits {name} {port};\n")),
                (4, _, Some(name)) => self.put(&format!("consumes {name} {port};\n")),
                _ => self.attribute()?,
            }
        }
        self.close();
        self.learn(&name, Kind::Component);
        let home = self.fresh("H");
        self.put(&format!(
            "home {home} manages {name} {{\n factory make{home}();\n}};\n"
        ));
        Ok(())
    }

    fn native(&mut self) -> Result<()> {
        let name = self.fresh("N");
        self.put(&format!("native {name};\n"));
        Ok(())
    }

    fn annotation(&mut self) -> Result<()> {
        let name = self.fresh("note");
        self.put(&format!(
            "@annotation {name} {{ long value default 3; string text default \"x\"; }};\n\
             @{name}(value = 4) typedef long T{name};\n"
        ));
        Ok(())
    }

    fn template(&mut self) -> Result<()> {
        let name = self.fresh("G");
        let ty = self.param_type()?;
        let instance = self.fresh("g");
        self.put(&format!(
            "module {name}<typename T, const long N> {{\n  typedef sequence<T, N> Items;\n\
             \x20 interface Holder {{ Items list(in T first); }};\n}};\n\
             module {name}<{ty}, 7> {instance};\n"
        ));
        let name = format!("{instance}::Items");
        self.learn(&name, Kind::Type);
        Ok(())
    }

    fn recursion(&mut self) -> Result<()> {
        let name = self.fresh("R");
        match self.below(3)? {
            0 => self.put(&format!(
                "struct {name};\ntypedef sequence<{name}> {name}s;\nstruct {name} {{ long a; \
                 {name}s b; }};\n"
            )),
            1 => self.put(&format!(
                "union {name};\ntypedef sequence<{name}> {name}s;\n\
                 union {name} switch (long) {{ case 1: {name}s some; case 2: double one; }};\n"
            )),
            _ => self.put(&format!(
                "struct {name} {{ long a; sequence<{name}> b; }};\n"
            )),
        }
        self.learn(&name, Kind::Type);
        Ok(())
    }

    fn directive(&mut self) -> Result<()> {
        let macro_name = self.fresh("D");
        let lines = self.pick(&[
            "#pragma prefix \"p.org\"\n",
            "#pragma prefix \"\"\n",
            "#if defined(D) && 1 + 1 == 2\nnonsense it's\n#elif 1\ntypedef short @;\n#endif\n",
            "#define @(a, ...) typedef a __VA_ARGS__\n@(long, @t);\n",
            "#define @ long\ntypedef @ @t;\n#undef @\n",
            "#define @(x) x ## 1\nconst long @(@n) = __LINE__;\n",
            "# 7 \"other.idl\" 1\ntypedef long @;\n# 9 \"no such directory/fuzz.idl\" 2\n",
            "#line 70\n",
            "/* a */ // b \\\n c\n",
        ])?;
        self.put(&lines.replace('@', &macro_name));
        Ok(())
    }
}
