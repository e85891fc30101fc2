// Asks for quotes by omniORB: `client REFERENCE [SYMBOL]`.

#include "quoter.hh"

#include <iostream>

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        if (argc < 2) {
            std::cerr << "usage: client REFERENCE [SYMBOL]" << std::endl;
            return 2;
        }
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        Quoter_var quoter = Quoter::_narrow(object);
        if (CORBA::is_nil(quoter)) {
            std::cerr << "the object is no Quoter" << std::endl;
            return 1;
        }
        std::cout << "ping: " << quoter->ping(4) << std::endl;

        DoubleSeq shifts(2);
        shifts.length(2);
        shifts[0] = 0.25;
        shifts[1] = 1.0;
        Quote_var quote = quoter->get_quote(argc > 2 ? argv[2] : "ACME", shifts);
        for (CORBA::ULong i = 0; i < quote->levels.length(); ++i) {
            std::cout << quote->symbol << ": " << quote->levels[i].qty << " at "
                      << quote->levels[i].px << std::endl;
        }
        orb->destroy();
        return 0;
    } catch (const UnknownSymbol& unknown) {
        std::cerr << "no quote of " << unknown.symbol << std::endl;
    } catch (const CORBA::SystemException& exception) {
        std::cerr << exception._name() << ", minor " << exception.minor() << std::endl;
    }
    return 1;
}
