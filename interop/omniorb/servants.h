// The servants of chronorb-interop/idl/interop.idl. What each operation does is written there.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_SERVANTS_H
#define CHRONORB_INTEROP_SERVANTS_H

#include <interop.hh>

#include <mutex>

// The rule of the echoes, for each way in which C++ passes a type.

// Numbers, enums and structs of fixed size.
#define ECHO_VALUE(op, T, In)                                                                      \
    T op(In v, T& io, T& o) override {                                                             \
        o = io;                                                                                    \
        io = v;                                                                                    \
        return v;                                                                                  \
    }

// Structs of variable size and sequences.
#define ECHO_VARIABLE(op, T)                                                                       \
    T* op(const T& v, T& io, T##_out o) override {                                                 \
        o = new T(io);                                                                             \
        io = v;                                                                                    \
        return new T(v);                                                                           \
    }

#define ECHO_STRING(op)                                                                            \
    char* op(const char* v, char*& io, CORBA::String_out o) override {                             \
        o = io;                                                                                    \
        io = CORBA::string_dup(v);                                                                 \
        return CORBA::string_dup(v);                                                               \
    }

#define ECHO_WIDE_STRING(op)                                                                       \
    CORBA::WChar* op(const CORBA::WChar* v, CORBA::WChar*& io, CORBA::WString_out o) override {    \
        o = io;                                                                                    \
        io = CORBA::wstring_dup(v);                                                                \
        return CORBA::wstring_dup(v);                                                              \
    }

// Arrays whose elements have a fixed size.
#define ECHO_ARRAY(op, T)                                                                          \
    T##_slice* op(const T v, T io, T o) override {                                                 \
        T##_copy(o, io);                                                                           \
        T##_copy(io, v);                                                                           \
        return T##_dup(v);                                                                         \
    }

// Arrays whose elements have a variable size.
#define ECHO_VARIABLE_ARRAY(op, T)                                                                 \
    T##_slice* op(const T v, T io, T##_out o) override {                                           \
        o = T##_dup(io);                                                                           \
        T##_copy(io, v);                                                                           \
        return T##_dup(v);                                                                         \
    }

#define ECHO_REFERENCE(op, I)                                                                      \
    I##_ptr op(I##_ptr v, I##_ptr& io, I##_out o) override {                                       \
        o = io;                                                                                    \
        io = I::_duplicate(v);                                                                     \
        return I::_duplicate(v);                                                                   \
    }

class EchoServant : public POA_Interop::Echo {
public:
    // Basics
    ECHO_VALUE(echo_boolean, CORBA::Boolean, CORBA::Boolean)
    ECHO_VALUE(echo_octet, CORBA::Octet, CORBA::Octet)
    ECHO_VALUE(echo_char, CORBA::Char, CORBA::Char)
    ECHO_VALUE(echo_short, CORBA::Short, CORBA::Short)
    ECHO_VALUE(echo_ushort, CORBA::UShort, CORBA::UShort)
    ECHO_VALUE(echo_long, CORBA::Long, CORBA::Long)
    ECHO_VALUE(echo_ulong, CORBA::ULong, CORBA::ULong)
    ECHO_VALUE(echo_longlong, CORBA::LongLong, CORBA::LongLong)
    ECHO_VALUE(echo_ulonglong, CORBA::ULongLong, CORBA::ULongLong)
    ECHO_VALUE(echo_float, CORBA::Float, CORBA::Float)
    ECHO_VALUE(echo_double, CORBA::Double, CORBA::Double)
    ECHO_VALUE(echo_color, Interop::Color, Interop::Color)
    void nothing() override {}
    Interop::ConstantValues* constant_values() override;

    // Texts
    ECHO_STRING(echo_string)
    ECHO_STRING(echo_name)
    ECHO_STRING(echo_nickname)
    ECHO_VARIABLE(echo_words, Interop::Words)
    ECHO_VARIABLE(echo_names, Interop::Names)

    // Structs
    ECHO_VALUE(echo_point, Interop::Shapes::Point, const Interop::Shapes::Point&)
    ECHO_VALUE(echo_segment, Interop::Shapes::Segment, const Interop::Shapes::Segment&)
    ECHO_VALUE(echo_mixed, Interop::Mixed, const Interop::Mixed&)
    ECHO_VARIABLE(echo_keywords, Interop::Keywords)
    ECHO_VARIABLE(echo_entry, Interop::Entry)
    ECHO_VARIABLE(echo_document, Interop::Document)

    // Sequences
    ECHO_VARIABLE(echo_booleans, Interop::Booleans)
    ECHO_VARIABLE(echo_octets, Interop::Octets)
    ECHO_VARIABLE(echo_chars, Interop::Chars)
    ECHO_VARIABLE(echo_shorts, Interop::Shorts)
    ECHO_VARIABLE(echo_ushorts, Interop::UShorts)
    ECHO_VARIABLE(echo_longs, Interop::Longs)
    ECHO_VARIABLE(echo_ulongs, Interop::ULongs)
    ECHO_VARIABLE(echo_longlongs, Interop::LongLongs)
    ECHO_VARIABLE(echo_ulonglongs, Interop::ULongLongs)
    ECHO_VARIABLE(echo_floats, Interop::Floats)
    ECHO_VARIABLE(echo_doubles, Interop::Doubles)
    ECHO_VARIABLE(echo_colors, Interop::Colors)
    ECHO_VARIABLE(echo_few_longs, Interop::FewLongs)
    ECHO_VARIABLE(echo_long_lists, Interop::LongLists)
    ECHO_VARIABLE(echo_word_lists, Interop::WordLists)
    ECHO_VARIABLE(echo_path, Interop::Shapes::Path)
    ECHO_VARIABLE(echo_entries, Interop::Entries)
    ECHO_VARIABLE(echo_matrices, Interop::Matrices)
    ECHO_VARIABLE(echo_documents, Interop::Documents)
    Interop::Octets* fill(CORBA::ULong count) override;
    CORBA::ULong sum(const Interop::Octets& v) override;

    // Arrays
    ECHO_ARRAY(echo_digest, Interop::Digest)
    ECHO_ARRAY(echo_matrix, Interop::Matrix)
    ECHO_VARIABLE_ARRAY(echo_labels, Interop::Labels)
    ECHO_ARRAY(echo_cube, Interop::Cube)
    ECHO_VARIABLE_ARRAY(echo_rows, Interop::Rows)
    ECHO_ARRAY(echo_triangle, Interop::Shapes::Triangle)

    CORBA::LongLong statistics(const Interop::Longs& v, CORBA::Long& low, CORBA::Long& high,
                               CORBA::ULong& count) override;
};

class WidesServant : public POA_Interop::Wides {
public:
    ECHO_VALUE(echo_wchar, CORBA::WChar, CORBA::WChar)
    ECHO_WIDE_STRING(echo_wstring)
    ECHO_WIDE_STRING(echo_wide_name)
    ECHO_VARIABLE(echo_wchars, Interop::WChars)
    ECHO_VARIABLE(echo_wide_words, Interop::WideWords)
    ECHO_VARIABLE(echo_wide_entry, Interop::WideEntry)
    CORBA::WChar* wide_constants(CORBA::WChar& glyph_value) override;
    void refuse(const CORBA::WChar* reason) override;
};

class PreciseServant : public POA_Interop::Precise {
public:
    ECHO_VALUE(echo_longdouble, CORBA::LongDouble, CORBA::LongDouble)
    ECHO_VARIABLE(echo_quads, Interop::Quads)
};

class FaultyServant : public POA_Interop::Faulty {
public:
    CORBA::Long raise_user(CORBA::Long code) override;
    void raise_system(const char* name, CORBA::ULong code, CORBA::Long completed) override;
    CORBA::Long echo_even(CORBA::Long v, CORBA::Long& io, CORBA::Long& o) override;
};

class NotesServant : public POA_Interop::Notes {
public:
    void note(CORBA::Long n) override;
    void note_longs(const char* text, const Interop::Longs& v) override;
    CORBA::Long noted(CORBA::LongLong& total) override;
    void forget() override;

private:
    std::mutex mutex_;
    CORBA::Long count_ = 0;
    CORBA::LongLong total_ = 0;
};

class PanelServant : public POA_Interop::Panel {
public:
    using Mode = Interop::Panel::Mode;
    using Setting = Interop::Panel::Setting;

    CORBA::Long level() override;
    void level(CORBA::Long v) override;
    char* label() override;
    void label(const char* v) override;
    CORBA::Boolean lit() override;
    void lit(CORBA::Boolean v) override;
    CORBA::Boolean armed() override;
    void armed(CORBA::Boolean v) override;
    Interop::Shapes::Point position() override;
    void position(const Interop::Shapes::Point& v) override;
    Mode current_mode() override;
    void current_mode(Mode v) override;
    Interop::Entries* table() override;
    void table(const Interop::Entries& v) override;
    CORBA::ULong changes() override;
    char* title() override;
    void apply(const Setting& v) override;
    Setting* current() override;
    void clear() override;

private:
    struct State {
        Setting setting;
        CORBA::Boolean lit = false;
        CORBA::Boolean armed = false;
        Interop::Shapes::Point position{0.0, 0.0};
        Interop::Entries table;
        CORBA::ULong changes = 0;

        State();
    };

    std::mutex mutex_;
    State state_;
};

class BottomServant : public POA_Interop::Bottom {
public:
    CORBA::Long height() override;
    void height(CORBA::Long v) override;
    char* top_name() override { return CORBA::string_dup("top"); }
    char* kind() override { return CORBA::string_dup("bottom"); }
    char* left_name() override { return CORBA::string_dup("left"); }
    char* right_name() override { return CORBA::string_dup("right"); }
    char* bottom_name() override { return CORBA::string_dup("bottom"); }

private:
    std::mutex mutex_;
    CORBA::Long height_ = 0;
};

class RelationsServant : public POA_Interop::Relations {
public:
    explicit RelationsServant(CORBA::ORB_ptr orb) : orb_(CORBA::ORB::_duplicate(orb)) {}

    ECHO_REFERENCE(echo_echo, Interop::Echo)
    ECHO_REFERENCE(echo_object, CORBA::Object)
    ECHO_VARIABLE(echo_link, Interop::Link)
    ECHO_VARIABLE(echo_echoes, Interop::Echoes)
    ECHO_VARIABLE(echo_objects, Interop::Objects)
    ECHO_VARIABLE_ARRAY(echo_pair, Interop::EchoPair)
    Interop::Echo_ptr none() override { return Interop::Echo::_nil(); }
    CORBA::Boolean absent(CORBA::Object_ptr v) override { return CORBA::is_nil(v); }
    char* to_text(CORBA::Object_ptr v) override;
    CORBA::Object_ptr from_text(const char* text) override;
    CORBA::Long call(Interop::Echo_ptr target, CORBA::Long v) override;
    CORBA::ULong call_octets(Interop::Echo_ptr target, const Interop::Octets& v) override;
    CORBA::Boolean ask_is_a(CORBA::Object_ptr target, const char* id) override;

private:
    CORBA::ORB_var orb_;
};

// The references that the hub gives away.
struct Targets {
    Interop::Echo_var echo;
    Interop::Wides_var wides;
    Interop::Precise_var precise;
    Interop::Faulty_var faulty;
    Interop::Notes_var notes;
    Interop::Panel_var panel;
    Interop::Bottom_var bottom;
    Interop::Relations_var relations;
    Interop::Echo_var forwarded;
    Interop::Echo_var deactivated;
};

class HubServant : public POA_Interop::Hub {
public:
    HubServant(CORBA::ORB_ptr orb, const Targets& targets)
        : orb_(CORBA::ORB::_duplicate(orb)), targets_(targets) {}

    Interop::Echo_ptr get_echo() override;
    Interop::Wides_ptr get_wides() override;
    Interop::Precise_ptr get_precise() override;
    Interop::Faulty_ptr get_faulty() override;
    Interop::Notes_ptr get_notes() override;
    Interop::Panel_ptr get_panel() override;
    Interop::Bottom_ptr get_bottom() override;
    Interop::Relations_ptr get_relations() override;
    Interop::Top_ptr get_top() override;
    Interop::Echo_ptr get_forwarded() override;
    Interop::Echo_ptr get_deactivated() override;
    char* orb_name() override { return CORBA::string_dup("omniORB"); }
    void shutdown() override;

private:
    CORBA::ORB_var orb_;
    Targets targets_;
};

#endif
